import { writeFileSync } from 'node:fs';
import { type ChildEvent, inProcessEngine, type RunSpec } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { anchor, type SqliteTapeStore, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { entryLines, eventsOf, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Answers of the letters a, b, c …: each after this many milliseconds. */
const answers = (delays: readonly number[]): ScriptAnswer[] =>
  delays.map((delayMs, i) => {
    const letter = String.fromCharCode(97 + i);
    return { text: `answer ${letter}`, delayMs, when: { text: `task ${letter}` } };
  });
const tasks = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    task: `task ${String.fromCharCode(97 + i)}`,
    name: String.fromCharCode(97 + i),
  }));
/** The sessions whose merges the parent has, in order. */
const merged = (store: SqliteTapeStore): string[] =>
  [...store.entries.read('main', { kind: 'anchor' })].flatMap(({ name = '' }) =>
    name.startsWith('merge/') ? [name.slice('merge/'.length)] : [],
  );

test('results are merged as they arrive, and reported in the order of the tasks', async () => {
  await using home = await scriptedDeck(answers([900, 450, 0]));
  const main = await home.deck.session('main');
  const outcomes = await main.delegate(tasks(3));
  expect(outcomes.map(({ session, status, text }) => [session, status, text])).toEqual([
    ['a', 'completed', 'answer a'],
    ['b', 'completed', 'answer b'],
    ['c', 'completed', 'answer c'],
  ]);
  expect(merged(home.store)).toEqual(['c', 'b', 'a']);
});

test('or are merged in the order in which they were spawned', async () => {
  await using home = await scriptedDeck(answers([160, 80, 0]));
  const main = await home.deck.session('main');
  const outcomes = await main.delegate(tasks(3), { order: 'spawn' });
  expect(merged(home.store)).toEqual(['a', 'b', 'c']);
  expect(outcomes.map((o) => o.merged?.seq)).toEqual([2, 4, 6]);
});

test.each([1, 2, 4])('no more children run at once than %i', async (concurrency) => {
  let now = 0;
  let most = 0;
  const work = tool({
    inputSchema: z.object({}),
    execute: async () => {
      now += 1;
      most = Math.max(most, now);
      // As many as may run at once meet here, however slowly each gets here; then they could be too many.
      const deadline = performance.now() + 10_000;
      do await new Promise((resolve) => setTimeout(resolve, 20));
      while (most < concurrency && performance.now() < deadline);
      now -= 1;
      return 'worked';
    },
  });
  await using home = await scriptedDeck([{ toolCalls: [{ name: 'work', input: {} }] }, { text: 'done' }], {
    tools: { work },
  });
  const main = await home.deck.session('main');
  const outcomes = await main.delegate(tasks(8), { concurrency });
  expect(outcomes.every(({ status }) => status === 'completed')).toBe(true);
  expect(most).toBe(concurrency);
});

test('events report every child: forked, its activity, ended, merged', async () => {
  await using home = await scriptedDeck(answers([0, 40]));
  const delegation = (await home.deck.session('main')).delegate(tasks(2));
  const events = await eventsOf(delegation);
  const line = (event: ChildEvent) =>
    event.type === 'child-event' ? `${event.session} ${event.event.type}` : `${event.session} ${event.type}`;
  expect(events.slice(0, 2).map(line)).toEqual(['a child-forked', 'b child-forked']);
  for (const session of ['a', 'b'])
    expect(events.filter((e) => e.session === session).map(line)).toEqual(
      [
        'child-forked',
        'run-started',
        'content-chunk',
        'content-chunk',
        'iteration-completed',
        'session-completed',
        'child-ended',
        'child-merged',
      ].map((type) => `${session} ${type}`),
    );
  expect(delegation.children).toEqual(['a', 'b']);
});

test('a failed child is one merge with its error; its siblings and its parent are intact', async () => {
  await using home = await scriptedDeck([
    { error: 'no such page', when: { text: 'task a' } },
    { text: 'answer b', when: { text: 'task b' } },
  ]);
  const main = await home.deck.session('main');
  const [a, b] = await main.delegate(tasks(2), { order: 'spawn' });
  expect(a).toMatchObject({ status: 'failed', error: expect.stringContaining('no such page') });
  expect(b).toMatchObject({ status: 'completed' });
  const tail = [...home.store.entries.read('main')].slice(1);
  expect(
    tail.map(({ payload }) => isObject(payload) && isObject(payload.state) && payload.state.status),
  ).toEqual(['failed', false, 'completed', false]);
  expect(entryLines(tail.slice(1, 2))[0]).toMatch(/status="failed">\nError: .*no such page/);
  expect(home.store.sessions.find('main')).toMatchObject({ head: 5, settled: 5 });
});

test('the last text of a failed child is merged with its error', async () => {
  const look = tool({ inputSchema: z.object({}), execute: async () => 'seen' });
  await using home = await scriptedDeck(
    [{ text: 'I am looking.', toolCalls: [{ name: 'look', input: {} }] }, { error: 'connection lost' }],
    { tools: { look } },
  );
  const [outcome] = await (await home.deck.session('main')).delegate({ task: 'Look' });
  expect(outcome?.status).toBe('failed');
  const text = entryLines(home.store.entries.read('main')).at(-1);
  expect(text).toContain('I am looking.\n\nError: connection lost');
});

test('a child that reaches its limit is merged as halted', async () => {
  const look = tool({ inputSchema: z.object({}), execute: async () => 'seen' });
  await using home = await scriptedDeck(
    [1, 2, 3].map(() => ({ toolCalls: [{ name: 'look', input: {} }] })),
    { tools: { look } },
  );
  const [outcome] = await (await home.deck.session('main')).delegate({ task: 'Look' }, { maxSteps: 2 });
  expect(outcome).toMatchObject({ status: 'halted', merged: { state: 'merged' } });
});

test('aborting a delegation ends all its children, and merges their work', async () => {
  await using home = await scriptedDeck(answers([0, 60_000, 60_000]));
  const main = await home.deck.session('main');
  const delegation = main.delegate(tasks(3), { concurrency: 2 });
  for await (const event of delegation)
    if (event.type === 'child-merged' && event.session === 'a') delegation.abort('enough');
  const outcomes = await delegation;
  expect(outcomes.map(({ session, status }) => [session, status])).toEqual([
    ['a', 'completed'],
    ['b', 'aborted'],
    ['c', 'aborted'],
  ]);
  expect(merged(home.store).sort()).toEqual(['a', 'b', 'c']);
});

test('closing the deck merges the work of running children, and leaves queued ones to a recovery', async () => {
  const store = openStore();
  store.sessions.open('main');
  await using home = await scriptedDeck(answers([60_000, 0]), { store });
  const main = await home.deck.session('main');
  const delegation = main.delegate(tasks(2), { concurrency: 1 });
  for await (const event of delegation)
    if (event.type === 'child-event' && event.event.type === 'run-started') break;
  await home.deck[Symbol.asyncDispose]();
  expect(await delegation).toMatchObject([
    { session: 'a', status: 'aborted', merged: { state: 'merged' } },
    { session: 'b', status: 'running', error: expect.stringContaining('the deck was closed') },
  ]);
  expect(store.sessions.find('b')?.task).toBeUndefined();
  await using next = await openDeck({ store, model: home.spec });
  expect(await next.recover()).toMatchObject({ resumed: ['b'], merged: ['b'] });
  expect(merged(store)).toEqual(['a', 'b']);
});

test('a deck is idle when no run and no child is active', async () => {
  await using home = await scriptedDeck(answers([0, 20, 40]));
  await home.deck.idle();
  const main = await home.deck.session('main');
  const delegation = main.delegate(tasks(3), { concurrency: 1 });
  await home.deck.idle();
  expect(merged(home.store)).toEqual(['a', 'b', 'c']);
  expect(await delegation).toHaveLength(3);
});

test('a task whose key was delegated before is the same child, and nothing runs twice', async () => {
  let runs = 0;
  const work = tool({
    inputSchema: z.object({}),
    execute: async () => {
      runs += 1;
      return 'worked';
    },
  });
  await using home = await scriptedDeck([{ toolCalls: [{ name: 'work', input: {} }] }, { text: 'done' }], {
    tools: { work },
  });
  const main = await home.deck.session('main');
  const task = { task: 'Work', key: 'monday' };
  const [first] = await main.delegate(task);
  const head = home.store.sessions.find('main');
  const [again] = await main.delegate(task);
  expect(runs).toBe(1);
  expect(again?.session).toBe(first?.session);
  expect(again).toMatchObject({ status: 'completed', merged: { seq: first?.merged?.seq, repeated: true } });
  expect(home.store.sessions.find('main')).toEqual(head);
  await expect(main.delegate({ ...task, task: 'Work more' })).rejects.toMatchObject({
    code: 'TAPE_KEY_CONFLICT',
  });
});

test('one key twice in one delegation is one child', async () => {
  await using home = await scriptedDeck([{ text: 'done', delayMs: 20 }]);
  const main = await home.deck.session('main');
  const task = { task: 'Work', key: 'monday' };
  for (const concurrency of [1, 4]) {
    const outcomes = await main.delegate([task, task], { concurrency });
    expect(new Set(outcomes.map(({ session }) => session)).size).toBe(1);
    expect(outcomes.map(({ status }) => status)).toEqual(['completed', 'completed']);
  }
  expect(merged(home.store)).toHaveLength(1);
});

test('one key in two concurrent delegations is one child, which runs once', async () => {
  await using home = await scriptedDeck([{ text: 'done', delayMs: 50 }]);
  const main = await home.deck.session('main');
  const task = { task: 'Work', key: 'monday' };
  const outcomes = (await Promise.all([main.delegate(task), main.delegate(task)])).flat();
  expect(outcomes.map(({ status }) => status)).toEqual(['completed', 'completed']);
  expect(merged(home.store)).toHaveLength(1);
  expect(entryLines(home.store.entries.read('main')).at(-1)).toContain('done');
});

test('an unusable model forks nothing', async () => {
  await using home = await scriptedDeck(answers([0]));
  const main = await home.deck.session('main');
  await expect(
    main.delegate([{ task: 'task a' }, { task: 'task b', model: 'script:/no/such/file' }]),
  ).rejects.toMatchObject({ code: 'SESSION_NO_FILE' });
  expect(home.store.sessions.list({ all: true })).toHaveLength(1);
});

test('an unknown anchor forks nothing', async () => {
  await using home = await scriptedDeck(answers([0]));
  const main = await home.deck.session('main');
  await expect(main.delegate(tasks(2), { inherit: { since: 'plan' } })).rejects.toMatchObject({
    code: 'TAPE_NO_ANCHOR',
  });
  expect(home.store.sessions.list({ all: true })).toHaveLength(1);
});

test.each([
  { name: 'go beyond a limit', more: {}, code: 'SESSION_LIMIT' },
  { name: 'have a name that is taken', more: { name: 'taken' }, code: 'TAPE_EXISTS' },
  { name: 'have the name of another', more: { name: 'a' }, code: 'SESSION_BAD_INPUT' },
  { name: 'be no child', more: { resume: 'taken' }, code: 'SESSION_BAD_INPUT' },
  {
    name: 'have a budget of nothing known',
    more: { budget: { steps: 1, minutes: 1 } },
    code: 'SESSION_BAD_INPUT',
  },
  { name: 'be told too much', more: { task: 'x'.repeat(17 << 20) }, code: 'TAPE_BAD_ENTRY' },
])('where the last of them would $name, no child is forked', async ({ more, code }) => {
  await using home = await scriptedDeck(answers([0, 0, 0]), {
    limits: { maxChildren: code === 'SESSION_LIMIT' ? 2 : 3 },
  });
  const main = await home.deck.session('main');
  await home.deck.session('taken');
  const [a, b, c = { task: '' }] = tasks(3);
  const all = [a, b, { ...c, ...more }].filter((task) => task !== undefined);
  await expect(main.delegate(all)).rejects.toMatchObject({ code });
  expect(home.store.sessions.list({ parent: 'main', all: true })).toEqual([]);
});

test('a task may name its own model', async () => {
  await using home = await scriptedDeck([{ text: 'by default' }]);
  const other = home.script([{ text: 'by another' }]);
  const main = await home.deck.session('main');
  const outcomes = await main.delegate([{ task: 'task a' }, { task: 'task b', model: other }]);
  expect(outcomes.map(({ text }) => text)).toEqual(['by default', 'by another']);
});

test('children see what followed the anchor, or nothing', async () => {
  await using home = await scriptedDeck([{ text: 'ok' }]);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [user('before'), anchor('plan'), user('after')]);
  await main.delegate({ task: 'Look', name: 'part' }, { inherit: { since: 'plan' } });
  await main.delegate(
    { task: 'Look', name: 'fresh', contextSummary: 'All is well.' },
    { inherit: 'nothing' },
  );
  const texts = async (name: string) =>
    JSON.stringify((await (await home.deck.session(name)).view()).messages);
  expect(await texts('part')).toContain('after');
  expect(await texts('part')).not.toContain('before');
  expect(await texts('fresh')).not.toContain('after');
  expect(await texts('fresh')).toContain('All is well.');
});

test('a task sets how much its own child inherits, overriding the options of all', async () => {
  await using home = await scriptedDeck([{ text: 'ok' }]);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [user('first'), anchor('plan'), user('second'), user('third')]);
  const inherits = ['all', 'nothing', { since: 'plan' }, { last: 1 }, undefined] as const;
  const tasks = inherits.map((inherit, i) => ({
    task: 'Look',
    name: `kid-${i}`,
    ...(inherit !== undefined && { inherit }),
  }));
  await main.delegate(tasks, { inherit: { last: 2 } });
  const starts = inherits.map(
    (_, i) =>
      [...home.store.entries.read(`kid-${i}`, { name: 'fork/start' })][0]?.payload as { range: unknown },
  );
  expect(starts.map(({ range }) => range)).toEqual([[1, 5], null, [4, 5], [5, 5], [4, 5]]);
});

test('a delegation without tasks has no results', async () => {
  await using home = await scriptedDeck([]);
  expect(await (await home.deck.session('main')).delegate([])).toEqual([]);
});

test('a child that can no longer run is reported as failed, and the rest continues', async () => {
  await using home = await scriptedDeck(answers([0, 0]));
  const main = await home.deck.session('main');
  const child = await main.fork({ name: 'a', key: 'a', task: 'task a' });
  home.store.sessions.update('a', { task: 'failed' });
  const outcomes = await main.delegate([{ task: 'task a', name: 'a', key: 'a' }, ...tasks(2).slice(1)]);
  expect(outcomes.map(({ status }) => status)).toEqual(['failed', 'completed']);
  expect(await child.finish()).toMatchObject({ repeated: true });
});

test('an engine of the deck receives the parent and depth of each run', async () => {
  const started: RunSpec[] = [];
  const engine = inProcessEngine();
  const told = {
    ...engine,
    start: async (run: RunSpec) => {
      started.push(run);
      await engine.start(run);
    },
  };
  await using home = await scriptedDeck([{ text: 'done' }], { engine: told });
  const main = await home.deck.session('main');
  await main.delegate({ task: 'Look', name: 'child' });
  await (await home.deck.session('child')).delegate({ task: 'Look closer', name: 'grandchild' });
  expect(started).toEqual([
    { id: 'child', parent: 'main', depth: 1 },
    { id: 'grandchild', parent: 'child', depth: 2 },
  ]);
});

test('a delegation without a model of its own runs on the model that the parent carries', async () => {
  using dir = tempDir();
  writeFileSync(dir.file('script.json'), JSON.stringify([{ text: 'One.' }]));
  await using store = await openStore();
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  await main.run('Hi', { model: `script:${dir.file('script.json')}` });
  expect(await main.delegate('Look')).toMatchObject([{ status: 'completed', text: 'One.' }]);
  const other = await deck.session('other');
  await expect(other.delegate('Look')).rejects.toMatchObject({ code: 'SESSION_NO_MODEL' });
  expect(await store.sessions.list({ parent: 'other', all: true })).toEqual([]);
});
