import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunStatus, SessionEvent } from '@tapedeck/runtime';
import { assistant, processOwner, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { type Process, startProcess } from '../support/process.ts';
import { startProvider } from '../support/provider.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

interface Shown {
  readonly session: string;
  readonly pid: number;
  readonly state: string;
  readonly phase?: string;
}

const file = (home: TempHome) => home.file('run/sessions.json');

/** The contents of the file: complete whenever it is read. */
function shown(home: TempHome): readonly Shown[] {
  if (!existsSync(file(home))) return [];
  return (JSON.parse(readFileSync(file(home), 'utf8')) as { sessions: Shown[] }).sessions;
}

/** Polls until it is so; the test's own timeout ends a wait in vain. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(10);
}

/** Runs sessions in a process of its own, with answers that take a minute. */
function startRuns(home: TempHome, ...names: readonly string[]): Process {
  writeFileSync(home.file('slow.json'), JSON.stringify([{ text: 'slow', delayMs: 60_000 }]));
  const script = `
    import { openDeck } from '@tapedeck/runtime';
    const [home, ...names] = process.argv.slice(1);
    const deck = await openDeck({ home, model: 'script:' + home + '/slow.json' });
    const runs = await Promise.all(names.map(async (name) => ({ run: (await deck.session(name)).run('Go') })));
    process.once('SIGTERM', async () => {
      await deck[Symbol.asyncDispose]();
      process.exit(0);
    });
    console.log('running');
    await Promise.all(runs.map(async ({ run }) => await run));
  `;
  return startProcess(script, home.path, ...names);
}

test('one file lists the runs of all processes, and loses each run when it ends, however it ends', async () => {
  using home = tempHome();
  const one = startRuns(home, 'a', 'b');
  const two = startRuns(home, 'c');
  const three = startRuns(home, 'd');
  await until(() => shown(home).filter(({ phase }) => phase === 'streaming').length === 4);
  const byName = Object.fromEntries(shown(home).map(({ session, pid, state }) => [session, { pid, state }]));
  expect(byName).toEqual({
    a: { pid: one.child.pid, state: 'busy' },
    b: { pid: one.child.pid, state: 'busy' },
    c: { pid: two.child.pid, state: 'busy' },
    d: { pid: three.child.pid, state: 'busy' },
  });
  expect(lstatSync(home.file('run')).mode & 0o777).toBe(0o700);
  expect(lstatSync(file(home)).mode & 0o777).toBe(0o600);
  await using deck = await openDeck({ home: home.path });
  const c = await deck.session('c');
  expect(await c.status()).toMatchObject({
    state: 'busy',
    phase: 'streaming',
    owner: { pid: two.child.pid },
  });
  await two.kill();
  // The lease decides: a file that a dead process left is ignored, and its run was interrupted.
  expect(await c.status()).toMatchObject({ state: 'interrupted' });
  one.child.kill('SIGTERM');
  await one.done();
  await until(() => shown(home).length === 1);
  expect(shown(home)).toMatchObject([{ session: 'd' }]);
  await three.kill();
  expect(shown(home)).toHaveLength(1);
  await using _later = await openDeck({ home: home.path });
  expect(shown(home)).toEqual([]);
  expect(readdirSync(home.file('run'))).toEqual(['sessions.json']);
});

test('processes that write the file at the same moment agree with the leases', async () => {
  using home = tempHome();
  const names = Array.from({ length: 4 }, (_, i) => [`x${i}`, `y${i}`]);
  const running = names.map((mine) => startRuns(home, ...mine));
  await Promise.all(running.map(({ prints }) => prints('running')));
  using store = home.open();
  await until(() => store.leases.list().length === 8);
  await until(() => shown(home).filter(({ phase }) => phase === 'streaming').length === 8);
  // And it stays so: no process replaces it with an older text.
  for (let look = 0; look < 20; look += 1) {
    await sleep(20);
    expect(shown(home)).toHaveLength(8);
  }
  for (const one of running) one.child.kill('SIGTERM');
  await Promise.all(running.map(({ done }) => done()));
  await using _later = await openDeck({ home: home.path });
  expect(shown(home)).toEqual([]);
});

test('a process restores the status of its run when a slow writer has replaced it with an older one', async () => {
  using home = tempHome();
  await using _running = startRuns(home, 'main');
  const isStreaming = () => shown(home)[0]?.phase === 'streaming';
  await until(isStreaming);
  // Past the check that follows each write.
  await sleep(400);
  writeFileSync(file(home), readFileSync(file(home), 'utf8').replace('"streaming"', '"processing"'));
  expect(isStreaming()).toBe(false);
  await until(isStreaming);
});

test('a compaction by hand is listed as a compaction, until it is over', async () => {
  using home = tempHome();
  const long = 'and so on '.repeat(100);
  home.session('main', ...[1, 2, 3].flatMap((i) => [user(`ask ${i} ${long}`), assistant(`${i}. ${long}`)]));
  await using provider = await startProvider(() => ({ text: 'So', hang: true }));
  const model = 'openai-compatible/test-model';
  await using deck = await openDeck({ home: home.path, model, env: provider.env });
  const main = await deck.session('main');
  const controller = new AbortController();
  const compacting = main.compact({ signal: controller.signal });
  await until(() => shown(home)[0]?.phase === 'compacting');
  await using other = await openDeck({ home: home.path });
  expect(await (await other.session('main')).status()).toMatchObject({ state: 'busy', phase: 'compacting' });
  controller.abort(new Error('enough'));
  await expect(compacting).rejects.toThrow('enough');
  await until(() => shown(home).length === 0);
  expect(await main.status()).toMatchObject({ state: 'idle' });
});

test('a session whose owner lists nothing is busy, and a foreign record of it is ignored', async () => {
  using home = tempHome();
  home.session('main');
  using store = home.open();
  const owner = processOwner('holder');
  store.leases.acquire('main', owner);
  await using deck = await openDeck({ home: home.path });
  const main = await deck.session('main');
  expect(await main.status()).toMatchObject({ state: 'busy', owner: { id: 'holder' } });
  const record = { session: 'main', id: main.id, owner: 'someone before', pid: owner.pid, state: 'retrying' };
  writeFileSync(file(home), JSON.stringify({ v: 1, sessions: [record, 7, { state: 'busy' }] }));
  expect((await main.status()).state).toBe('busy');
  writeFileSync(file(home), '{"v":1,"sess');
  expect((await main.status()).state).toBe('busy');
  writeFileSync(file(home), JSON.stringify({ v: 1, sessions: [{ ...record, owner: 'holder' }] }));
  expect((await main.status()).state).toBe('retrying');
});

test('a file that cannot be written causes one warning, and stops no run', async () => {
  using home = tempHome();
  await using provider = await startProvider(() => ({ text: 'Well.', delayMs: 1500 }));
  home.session('main');
  writeFileSync(home.file('run'), 'in the way');
  await using deck = await openDeck({
    home: home.path,
    model: 'openai-compatible/test-model',
    env: provider.env,
  });
  const main = await deck.session('main');
  const events: SessionEvent[] = [];
  const run = main.run('Go');
  for await (const event of run) events.push(event);
  expect(await run).toMatchObject({ finish: 'stop', text: 'Well.' });
  const warnings = events.filter(({ type }) => type === 'warning');
  expect(warnings).toEqual([
    { type: 'warning', message: expect.stringMatching(/^cannot list active runs in '.+': .+/) },
  ]);
  expect(readFileSync(home.file('run'), 'utf8')).toBe('in the way');
});

test('a pipe in the place of the file does not block', async () => {
  using home = tempHome();
  home.session('main');
  mkdirSync(home.file('run'));
  execFileSync('mkfifo', [file(home)]);
  await using provider = await startProvider(() => ({ text: 'Well.' }));
  await using deck = await openDeck({
    home: home.path,
    model: 'openai-compatible/test-model',
    env: provider.env,
  });
  const main = await deck.session('main');
  expect(await main.run('Go')).toMatchObject({ text: 'Well.' });
  expect(await main.status()).toMatchObject({ state: 'idle' });
});

test('a deck that runs nothing creates no file', async () => {
  using home = tempHome();
  await using deck = await openDeck({ home: home.path });
  await (await deck.session('main')).anchor('here');
  await deck[Symbol.asyncDispose]();
  expect(existsSync(home.file('run'))).toBe(false);
});

test('status reports idle, busy, retrying with its reason, busy, idle; a late reader gets the same', async () => {
  using home = tempHome();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using provider = await startProvider(async (_, index) => {
    await gates[index]?.promise;
    return index === 0 ? { status: 503, message: 'too many today' } : { text: 'Well.' };
  });
  const settings = { home: home.path, model: 'openai-compatible/test-model', env: provider.env };
  await using deck = await openDeck({ ...settings, limits: { retryDelayMs: 1 } });
  const main = await deck.session('main');
  const told: string[] = [];
  const over = new AbortController();
  const listening = (async () => {
    for await (const event of main.subscribe({ signal: over.signal }))
      if (event.type === 'status-changed' && told.at(-1) !== event.status.state)
        told.push(event.status.state);
  })();
  const seen: RunStatus[] = [await main.status()];
  const run = main.run('Go');
  await until(() => provider.requests.length === 1);
  seen.push(await main.status());
  gates[0]?.resolve();
  for await (const event of run) {
    if (event.type === 'retrying') seen.push(await main.status());
    if (event.type === 'retrying') gates[1]?.resolve();
    if (event.type === 'content-chunk') seen.push(await main.status());
  }
  await run;
  seen.push(await main.status());
  while (told.at(-1) !== 'idle') await sleep(1);
  over.abort();
  await listening;
  expect(told).toEqual(['busy', 'retrying', 'busy', 'idle']);
  expect(seen).toMatchObject([
    { state: 'idle' },
    { state: 'busy', phase: 'streaming', run: run.id },
    { state: 'retrying', attempt: 1, message: expect.stringContaining('too many today'), run: run.id },
    { state: 'busy', phase: 'streaming', run: run.id },
    { state: 'idle' },
  ]);
  await using later = await openDeck({ home: home.path });
  expect((await (await later.session('main')).status()).state).toBe('idle');
});
