import { readFileSync, writeFileSync } from 'node:fs';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import pg from 'pg';
import { expect, test } from 'vitest';
import {
  type CliOptions,
  json,
  jsonLines,
  type Running,
  startTape,
  tape,
  tapeProcess,
} from '../support/cli.ts';
import { serverPlace } from '../support/postgres.ts';
import { ownServer } from '../support/postgres-server.ts';
import { atFullSize } from '../support/size.ts';
import { slowLink } from '../support/slow-link.ts';
import { tempDir } from '../support/temp-dir.ts';

/** What an address has that no output may have. */
const password = /not.{1,3}a.{1,3}secret/;

/** A home on a server with a session, and answers: those to a task with `slow` come late. */
async function place(given?: string) {
  const stack = new AsyncDisposableStack();
  const server = stack.use(await serverPlace());
  const url = given ?? server.url;
  const dir = stack.use(tempDir());
  const answers: readonly ScriptAnswer[] = [
    { when: { text: 'soon' }, delayMs: 1_500, text: 'Done soon.' },
    { when: { text: 'slow' }, delayMs: 60_000, text: 'Done late.' },
    { when: { text: 'steps' }, delayMs: 3_000, text: 'Done at last.' },
    ...Array.from({ length: 9 }, () => ({ text: 'Done.' })),
  ];
  writeFileSync(dir.file('answers.json'), JSON.stringify(answers));
  const model = ['--model', `script:${dir.file('answers.json')}`];
  const options: CliOptions = { home: url, cwd: dir.path, env: { HOME: dir.path } };
  const said: string[] = [];
  const keep = async (running: Running) => {
    const result = await running.done;
    said.push(result.stdout, result.stderr);
    return result;
  };
  const start = (args: readonly string[]) => {
    const running = startTape(args, options);
    stack.defer(() => void running.child.kill('SIGKILL'));
    running.child.stdin?.end();
    return { ...running, done: keep(running) };
  };
  const schema = new URL(server.url).searchParams.get('schema');
  stack.defer(async () => {
    const client = new pg.Client(server.url.replace(/\?.*/, ''));
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema}_boss CASCADE`);
    await client.end();
  });
  return {
    url,
    said,
    openHome: server.openHome,
    tape: async (...args: readonly string[]) => {
      const result = await tape(args, options);
      said.push(result.stdout, result.stderr);
      return result;
    },
    start,
    delegate: (...args: readonly string[]) => ['delegate', 'main', '--engine', 'pg-boss', ...model, ...args],
    /** Starts a worker, and waits until it works. */
    worker: async (...args: readonly string[]) => {
      const worker = start(['worker', ...model, ...args]);
      await worker.until('Ready: ');
      return worker;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test('children run in a worker: a command waits for them, or leaves them to it', {
  timeout: 300_000,
}, async () => {
  await using at = await place();
  using store = await at.openHome();
  store.sessions.open('main');
  const health = async () => {
    const { code, stdout } = await at.tape('worker', '--health', '--json');
    return { code, ...json({ code: 0, stdout, stderr: '' }) };
  };
  expect(await health()).toMatchObject({ code: 1, healthy: false, why: expect.stringMatching(/no queue/) });

  // None is there yet.
  const left = await at.tape(...at.delegate('--task', 'A', '--task', 'B', '--background', '--json'));
  expect(left.stderr).toMatch(/^No worker runs the children of .*\nHint: start one with: tape worker\n/);
  const { children } = json(left) as { children: readonly { session: string }[] };
  expect(children).toMatchObject([{ status: 'running', merged: false }, { status: 'running' }]);
  expect(await health()).toMatchObject({ code: 1, why: expect.stringMatching(/no worker/), waiting: 2 });

  const worker = await at.worker('--concurrency', '2', '--jsonl');
  expect(readFileSync(`/proc/${worker.child.pid}/cmdline`, 'latin1')).not.toMatch(password);
  expect(await health()).toMatchObject({ code: 0, healthy: true, workers: [{ pid: worker.child.pid }] });
  const waited = await at.tape(...at.delegate('--task', 'C', '--max-steps', '3'));
  expect(waited).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^main-c-\w+ completed, merged into main@\d+: Done\.\nUndo with: tape undo /,
    ),
    stderr: expect.not.stringContaining('No worker'),
  });
  const left2 = () => store.sessions.list({ parent: 'main' }).map(({ delivery }) => delivery);
  await expect.poll(left2).toEqual(['merged', 'merged', 'merged']);

  const [first] = children;
  const resumed = await at.tape(...at.delegate('--resume', first?.session ?? '', '--task', 'More', '--json'));
  expect(json(resumed)).toMatchObject({
    children: [{ session: first?.session, status: 'completed', merged: true, repeated: false }],
  });

  // Told to stop in the middle of a child, it finishes that.
  const soon = at.start(at.delegate('--task', 'soon', '--json'));
  await worker.until('"session":"main-soon-');
  worker.child.kill('SIGTERM');
  expect(json(await soon.done)).toMatchObject({
    children: [{ merged: true, repeated: false, text: 'Done soon.' }],
  });
  const ended = await worker.done;
  expect(ended.code).toBe(0);
  expect(jsonLines(ended).at(-1)).toEqual({ ended: 5, gave_back: 0 });
  expect(jsonLines(ended).filter(({ type }) => type === 'child-ended')).toHaveLength(5);

  // No worker is left, and Ctrl-C ends the child where it waits.
  const alone = at.start(at.delegate('--task', 'alone'));
  await alone.until('Hint: start one with: tape worker');
  alone.child.kill('SIGINT');
  expect(await alone.done).toMatchObject({
    code: 130,
    stdout: expect.stringContaining('aborted, merged into'),
  });
  expect(at.said.join('\n')).not.toMatch(password);
});

test('a worker that cannot work says why, and nothing of the password', async () => {
  await using at = await place();
  const refused = async (...args: readonly string[]) => {
    const { code, stderr } = await at.tape('worker', ...args);
    expect(stderr).not.toMatch(password);
    return [code, ...stderr.trimEnd().split('\n')];
  };
  const wrong = at.url.replace('not%20a%20secret', 'not%20a%20secret%20either');
  const results = await Promise.all([
    refused('--home', wrong),
    refused('--home', at.url.replace(/:\d+\//, ':1/'), '--health'),
    refused('--concurrency', '0'),
    refused('--concurrency', '1000000'),
  ]);
  expect(results).toEqual([
    [1, expect.stringMatching(/does not accept the user and password$/), expect.any(String)],
    [1, expect.stringMatching(/no server answers there$/), expect.any(String)],
    [
      2,
      expect.stringMatching(/--concurrency is a whole number from 1 to 200$/),
      'Hint: start one with: tape worker --concurrency 1',
    ],
    [
      2,
      expect.stringMatching(/--concurrency is a whole number from 1 to 200$/),
      'Hint: start several workers, each with: tape worker --concurrency 200',
    ],
  ]);
});

test.runIf(atFullSize)(
  'another worker continues the child of one that was killed, and an abort reaches it there',
  { timeout: 300_000 },
  async () => {
    await using at = await place();
    using store = await at.openHome();
    store.sessions.open('main');
    const workers = await Promise.all([at.worker(), at.worker()]);
    const command = at.start(at.delegate('--task', 'slow'));
    const holder = await Promise.race(
      workers.map(async (worker) => {
        await worker.until('Started main-slow');
        return worker;
      }),
    );
    const other = workers.find((worker) => worker !== holder);
    // The second signal does not wait for the child.
    holder.child.kill('SIGTERM');
    await holder.until('Stopping');
    holder.child.kill('SIGTERM');
    expect((await holder.done).code).toBe(143);
    await other?.until('Started main-slow');
    command.child.kill('SIGINT');
    expect(await command.done).toMatchObject({
      code: 130,
      stdout: expect.stringContaining(' aborted, merged into '),
    });
    await other?.until('Ended main-slow');
    other?.child.kill('SIGINT');
    expect((await other?.done)?.code).toBe(0);
    expect(at.said.join('\n')).not.toMatch(password);
  },
);

test.runIf(atFullSize)(
  'a worker makes a home that does not exist, and works on after a restart of the server',
  { timeout: 300_000 },
  async () => {
    await using server = await ownServer();
    await using at = await place(server.url);
    expect(await at.tape('worker', '--health')).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/has no tapes yet\n/),
    });
    const worker = await at.worker();
    const steps = at.start(['delegate', 'main', '--engine', 'pg-boss', '--task', 'steps']);
    expect((await steps.done).code).toBe(3);
    expect(await at.tape('new', 'main')).toMatchObject({ code: 0 });
    const command = at.start(at.delegate('--task', 'steps'));
    await worker.until('Started main-steps');
    // By then the command only waits: an act that loses its connection would fail.
    await new Promise((done) => setTimeout(done, 1_000));
    await server.restart();
    expect(await command.done).toMatchObject({ code: 0, stdout: expect.stringContaining('Done at last.') });
    worker.child.kill('SIGTERM');
    const { code, stderr } = await worker.done;
    expect(code).toBe(0);
    // Each of its places has met the same.
    const troubles = stderr.split('\n').filter((line) => line.startsWith('The queue cannot be used now'));
    expect(troubles).toEqual([...new Set(troubles)]);
    expect(troubles.join('')).not.toContain('Worker:');
    expect(at.said.join('\n')).not.toMatch(password);
  },
);

test.runIf(atFullSize)('a worker whose reader has ended runs its child, and ends then', async () => {
  await using at = await place();
  using store = await at.openHome();
  store.sessions.open('main');
  const worker = await at.worker('--jsonl');
  worker.child.stdout?.destroy();
  expect(await at.tape(...at.delegate('--task', 'A'))).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('completed, merged into'),
  });
  expect((await worker.done).code).toBe(0);
});

test('a command whose connection is lost says that the server may have done it', async () => {
  await using server = await serverPlace();
  {
    using store = await server.openHome();
    store.sessions.open('main');
  }
  await using link = await slowLink(server.url);
  using dir = tempDir();
  // Enough for it to find the session, and too few for its act.
  link.cutAfter(8);
  const { code, stderr } = await tapeProcess(['anchor', 'main', 'here'], {
    home: link.url,
    env: { HOME: dir.path },
  });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Error: cannot use postgres:.*: the connection failed: .*\n/);
  expect(stderr).toContain('Hint: the server may have done it: look with: tape sessions --home ');
});
