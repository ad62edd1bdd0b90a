import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';
import { followUi, sendRaw, startUi, type Ui } from '../support/ui.ts';

/** A request on a connection that stays open. */
function request({ port, cookie }: Ui, path = '/api/home'): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: ${cookie}\r\n\r\n`;
}

async function connected({ port }: Ui): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Asks on connections that are open, and returns the statuses that they get. */
async function statusesOn(ui: Ui, sockets: readonly Socket[]): Promise<readonly string[]> {
  return await Promise.all(
    sockets.map(async (socket) => {
      socket.write(request(ui));
      const [part] = (await once(socket, 'data')) as [Buffer];
      return part.toString().slice(9, 12);
    }),
  );
}

/** The memory of the process of a server, in MB. */
function memoryOf({ pid }: Ui): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

test('slow clients are cut off, and keep the server from answering no other', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  await using ui = await startUi([], { home: home.path });
  const begun = performance.now();
  const slow = Array.from({ length: 200 }, (_, i) => {
    const socket = connect({ port: ui.port, host: '127.0.0.1' }).on('error', () => {});
    socket.resume();
    // Some say nothing at all, some send a header byte by byte.
    const dripping = i % 2 === 0 ? undefined : setInterval(() => socket.write('a'), 500);
    if (i % 2 === 1) socket.write('GET / HTTP/1.1\r\nX-A: ');
    const closed = new Promise((done) => socket.once('close', done));
    return closed.then(() => clearInterval(dripping));
  });
  for (let i = 0; i < 20; i += 1) expect((await ui.ask('/api/home')).status).toBe(200);
  await Promise.all(slow);
  expect(performance.now() - begun).toBeLessThan(20_000);
  expect((await ui.ask('/api/home')).status).toBe(200);
});

// Runs at the same time as the next test, which waits as long.
test.concurrent('a check that takes longer than a client may stall is answered', async ({ expect }) => {
  using home = tempHome();
  home.session('main', ...Array.from({ length: 2_100 }, (_, i) => user(`${i}`)));
  using dir = tempDir();
  writeFileSync(
    dir.file('late.cjs'),
    "if (process.argv[2] === 'check') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 70_000);",
  );
  const env = { NODE_OPTIONS: `--require ${dir.file('late.cjs')}` };
  await using ui = await startUi([], { home: home.path, env });
  const begun = performance.now();
  const answer = await ui.ask('/api/findings');
  expect([answer.status, await answer.json()]).toMatchObject([200, { entries: 2_101, findings: [] }]);
  expect(performance.now() - begun).toBeGreaterThan(70_000);
}, 300_000);

test.concurrent('a client that does not read its answers is cut off, and costs little', async ({
  expect,
}) => {
  using home = tempHome();
  home.session(
    'main',
    ...Array.from({ length: 200 }, (_, i) => user(`${i} ${'so many words '.repeat(300)}`)),
  );
  await using ui = await startUi([], { home: home.path });
  const before = memoryOf(ui);
  const begun = performance.now();
  const ended = Array.from({ length: 50 }, async () => {
    const socket = await connected(ui);
    socket.pause();
    const bytes = request(ui, '/api/timeline?session=main&from=1&to=200');
    socket.write(bytes.repeat(90));
    const writing = setInterval(() => socket.writable && socket.write(bytes), 1_000);
    await new Promise((done) => socket.once('close', done));
    clearInterval(writing);
  });
  for (let i = 0; i < 10; i += 1) expect((await ui.ask('/api/home')).status).toBe(200);
  expect(memoryOf(ui) - before).toBeLessThan(300);
  await Promise.all(ended);
  expect(performance.now() - begun).toBeLessThan(120_000);
  expect((await ui.ask('/api/home')).status).toBe(200);
}, 300_000);

// The server closes a connection that says nothing for five seconds: on a busy machine one step here can take as long.
const anew = { timeout: 300_000, retry: 2 };

test(
  'a thousand connections are answered, those beyond are refused, and the thousand go on',
  anew,
  async () => {
    using home = tempHome();
    home.session('main', user('Hello'));
    await using ui = await startUi([], { home: home.path });
    const filesOpen = () => readdirSync(`/proc/${ui.pid}/fd`).length;
    await ui.ask('/api/home');
    const before = filesOpen();
    // A connection of `fetch` can still be open.
    const sockets = await Promise.all(Array.from({ length: 1_000 }, async () => await connected(ui)));
    expect(new Set(await statusesOn(ui, sockets.slice(0, 990)))).toEqual(new Set(['200']));
    const beyond = await Promise.all(
      Array.from({ length: 20 }, async () => await sendRaw(ui.port, request(ui))),
    );
    for (const { status, headers, body } of beyond.slice(10)) {
      expect([status, JSON.parse(body)]).toEqual([503, expect.objectContaining({ code: 'UI_BUSY' })]);
      expect(headers).toMatch(/^Retry-After: 5\r$/m);
      expect(headers).toMatch(/^Connection: close\r?$/m);
    }
    // Even more are closed.
    const many = await Promise.all(Array.from({ length: 200 }, async () => await connected(ui)));
    await Promise.race(many.map(async (socket) => await once(socket.resume(), 'close')));
    expect(new Set(await statusesOn(ui, sockets.slice(0, 990)))).toEqual(new Set(['200']));
    for (const socket of [...sockets, ...many]) socket.destroy();
    await expect.poll(filesOpen).toBeLessThan(before + 5);
    expect((await ui.ask('/api/home')).status).toBe(200);
  },
);

test('many streams follow at once, and one more is refused until one has ended', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  await using ui = await startUi([], { home: home.path });
  const streams = Array.from({ length: 64 }, () => followUi(ui, { after: 'nowhere' }));
  await expect.poll(() => streams.filter(({ events }) => events.length > 0).length).toBe(64);
  for (let i = 0; i < 3; i += 1) {
    const refused = await sendRaw(ui.port, request(ui, '/api/events'));
    expect([refused.status, JSON.parse(refused.body)]).toEqual([
      503,
      expect.objectContaining({ code: 'UI_BUSY', hint: expect.any(String) }),
    ]);
    expect(refused.headers).toMatch(/^Retry-After: 5\r$/m);
  }
  using writer = home.open();
  writer.entries.append('main', [user('More')]);
  await expect.poll(() => streams.filter(({ events }) => events.at(-1)?.head === 3).length).toBe(64);
  streams.pop()?.socket.destroy();
  await expect
    .poll(async () => {
      const { status, body } = await ui.ask('/api/events');
      await body?.cancel();
      return status;
    })
    .toBe(200);
  for (const stream of streams) stream[Symbol.dispose]();
}, 300_000);

test('a stream that is not read costs no memory, and is whole when it is read again', async () => {
  using home = tempHome();
  const names = Array.from({ length: 400 }, (_, i) => `${'long-name-'.repeat(12)}${i}`);
  using writer = home.open();
  for (const name of names) writer.sessions.open(name);
  await using ui = await startUi([], { home: home.path });
  const { at } = (await (await ui.ask('/api/home')).json()) as { at: string };
  using stalled = followUi(ui, { after: at });
  using reading = followUi(ui, { after: at });
  await expect.poll(() => stalled.text()).toContain('retry');
  stalled.socket.pause();
  const before = memoryOf(ui);
  for (let round = 0; round < 50; round += 1) {
    for (const name of names) writer.entries.append(name, [user(`Round ${round}`)]);
    await new Promise((done) => setTimeout(done, 60));
  }
  const isAtEnd = ({ events }: typeof reading) =>
    new Set(events.filter(({ head }) => head === 51).map(({ session }) => session)).size === names.length;
  await expect.poll(() => isAtEnd(reading), { timeout: 180_000 }).toBe(true);
  expect(memoryOf(ui) - before).toBeLessThan(150);
  expect(stalled.events.length).toBeLessThan(reading.events.length);
  stalled.socket.resume();
  await Promise.race([
    expect.poll(() => isAtEnd(stalled), { timeout: 180_000 }).toBe(true),
    once(stalled.socket, 'close'),
  ]);
  using again = followUi(ui, { after: at, last: stalled.last() });
  await expect.poll(() => isAtEnd(again) || isAtEnd(stalled), { timeout: 180_000 }).toBe(true);
}, 300_000);
