import { setTimeout as sleep } from 'node:timers/promises';
import { delegationTools, inProcessEngine, type Session } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { modeOf } from '../support/provider/modes.ts';
import { startProvider } from '../support/provider.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';

const step = tool({ inputSchema: z.object({}), execute: async () => 'done' });

/** Answers of a session that would continue for ever, with this many tokens a step. */
const endless = (session: string, tokens = 10): ScriptAnswer[] =>
  Array.from({ length: 30 }, (_, i) => ({
    toolCalls: [{ name: 'step', input: {}, id: `s${i}` }],
    usage: { input: tokens - 1, output: 1 },
    when: { session },
  }));

const haltOf = (store: SqliteTapeStore, session: string) =>
  [...store.entries.read(session, { kind: 'event', own: true })].find(({ name }) => name === 'run/halted')
    ?.payload;

const mergeText = (store: SqliteTapeStore, session = 'main') => {
  const found = [...store.entries.read(session, { kind: 'message' })].find(
    ({ meta }) => meta.source === 'merge',
  )?.payload;
  return JSON.stringify(found);
};

test.each([
  { limit: 'steps', budget: { steps: 2 }, steps: 2 },
  { limit: 'tokens', budget: { tokens: 25 }, steps: 3 },
  { limit: 'cost', budget: { cost: 4 }, steps: 4 },
])(
  'a child is halted when its $limit are used up, and its parent is notified',
  async ({ limit, budget, steps }) => {
    await using home = await scriptedDeck(endless('kid'), {
      tools: { step },
      cost: () => 1,
      limits: { maxSteps: 20 },
    });
    const main = await home.deck.session('main');
    const [outcome] = await main.delegate({ task: 'Go', name: 'kid', budget });
    expect(outcome).toMatchObject({ status: 'halted' });
    expect(outcome?.text).toMatch(new RegExp(`the ${limit} of 'kid' are used up`));
    expect(haltOf(home.store, 'kid')).toMatchObject({ limit });
    expect(await (await home.deck.session('kid')).usage()).toMatchObject({ steps });
    expect(mergeText(home.store)).toMatch(/status=\\"halted\\" partial=\\"true\\".*are used up/);
    expect([...home.store.entries.read('main', { kind: 'anchor' })].at(-1)?.payload).toMatchObject({
      state: { status: 'halted', partial: true },
    });
  },
);

test('a child is halted when its time is over, in the middle of a call, and its partial answer stays', async () => {
  const slow = [{ text: 'never said', delayMs: 60_000, when: { session: 'kid' } }];
  await using home = await scriptedDeck(slow, { tools: { step }, store: openTapeStore(':memory:') });
  const main = await home.deck.session('main');
  const [outcome] = await main.delegate({ task: 'Go', name: 'kid', budget: { timeMs: 150 } });
  expect(outcome).toMatchObject({ status: 'halted', text: "Halted: the time budget of 'kid' ran out" });
  expect(haltOf(home.store, 'kid')).toMatchObject({ limit: 'time' });
});

test('a call that was running when the time ended has a result before the merge', async () => {
  const hang = tool({
    inputSchema: z.object({}),
    execute: async (_, { abortSignal }) =>
      await new Promise((_, reject) =>
        abortSignal?.addEventListener('abort', () => reject(abortSignal.reason)),
      ),
  });
  const calls = [{ toolCalls: [{ name: 'hang', input: {}, id: 'h1' }], when: { session: 'kid' } }];
  await using home = await scriptedDeck(calls, { tools: { hang }, store: openTapeStore(':memory:') });
  const main = await home.deck.session('main');
  const [outcome] = await main.delegate({ task: 'Go', name: 'kid', budget: { timeMs: 300 } });
  expect(outcome).toMatchObject({ status: 'halted', merged: { state: 'merged' } });
  expect(entryLines(home.store.entries.read('kid', { kind: 'tool-result' }))).toEqual([
    'hang h1 → error-text Outcome unknown: its time budget ran out.',
  ]);
});

test('a tree budget bounds a child and all its descendants together', async () => {
  const delegate = (task: string, session: string, id: string): ScriptAnswer => ({
    toolCalls: [{ name: 'delegate', input: { tasks: [{ task }] }, id }],
    usage: { input: 9, output: 1 },
    when: { session },
  });
  await using home = await scriptedDeck(
    [delegate('Dig', 'kid', 'd1'), ...endless('kid-*'), { text: 'Enough.', when: { session: 'kid' } }],
    { tools: { step, ...delegationTools() }, limits: { maxSteps: 20 } },
  );
  const main = await home.deck.session('main');
  const [outcome] = await main.delegate({ task: 'Go', name: 'kid', treeBudget: { tokens: 50 } });
  const [below] = home.store.sessions.list({ parent: 'kid', all: true });
  expect(below).toMatchObject({ task: 'halted' });
  expect(haltOf(home.store, below?.session ?? '')).toMatchObject({
    limit: 'tokens',
    message: expect.stringContaining("'kid' and its descendants"),
  });
  // One step of the child, four of the one below it: then the whole tree stops, the child itself included.
  expect(await (await home.deck.session('kid')).usage({ tree: true })).toMatchObject({ tree: { total: 50 } });
  expect(outcome).toMatchObject({ status: 'halted' });
});

test('the budget of a sibling counts as used until it has ended: a fork over the rest is refused', async () => {
  await using home = await scriptedDeck([{ text: 'Cheap.', usage: { input: 5, output: 5 } }]);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', treeBudget: { tokens: 100 }, onUnmerged: 'keep' });
  const first = await kid.fork({
    name: 'first',
    budget: { tokens: 80 },
    deliver: 'merge',
    onUnmerged: 'keep',
  });
  await expect(kid.fork({ name: 'second', budget: { tokens: 30 } })).rejects.toMatchObject({
    code: 'SESSION_LIMIT',
    message: expect.stringMatching(/20 of 100 tokens left, and the child would get 30/),
  });
  expect(home.store.sessions.find('second')).toBeUndefined();
  await first.run('Go');
  await first.finish();
  // It took ten of its eighty.
  expect(await kid.fork({ name: 'second', budget: { tokens: 30 }, onUnmerged: 'keep' })).toMatchObject({
    name: 'second',
  });
});

test('a delegation forks no child unless the budget covers all of them', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', treeBudget: { tokens: 100 }, onUnmerged: 'keep' });
  const tasks = [{ task: 'one' }, { task: 'two' }];
  await expect(kid.delegate(tasks, { budget: { tokens: 60 } })).rejects.toMatchObject({
    code: 'SESSION_LIMIT',
    message: expect.stringMatching(/100 of 100 tokens left, and 2 children would get 120/),
  });
  expect(home.store.sessions.list({ parent: 'kid', all: true })).toEqual([]);
  expect(await kid.delegate(tasks, { budget: { tokens: 50 } })).toHaveLength(2);
});

test('the tree budget of a deck bounds the whole tree, and blocks no session in it from delegating', async () => {
  const delegate = (session: string): ScriptAnswer[] => [
    { toolCalls: [{ name: 'delegate', input: { tasks: [{ task: 'Go' }] } }], when: { session } },
    { text: 'Done.', when: { session } },
  ];
  await using home = await scriptedDeck(
    [...delegate('kid'), ...delegate('kid-go-????????'), ...endless('kid-*')],
    { tools: { step, ...delegationTools() }, budget: { tree: { steps: 9 } }, limits: { maxSteps: 50 } },
  );
  const main = await home.deck.session('main');
  await main.delegate({ task: 'Go', name: 'kid' });
  const [below] = home.store.sessions.list({ parent: 'kid', all: true });
  const [deepest] = home.store.sessions.list({ parent: below?.session ?? '', all: true });
  expect(haltOf(home.store, deepest?.session ?? '')).toMatchObject({
    limit: 'steps',
    message: "the steps of 'kid' and its descendants are used up: 9 of 9",
  });
});

test('a child at the depth limit can be forked; one deeper is refused, before anything is written', async () => {
  await using home = await scriptedDeck([]);
  let at = await home.deck.session('main');
  for (let depth = 1; depth <= 3; depth += 1) at = await at.fork({ name: `d${depth}`, onUnmerged: 'keep' });
  await expect(at.fork({ name: 'd4' })).rejects.toMatchObject({
    code: 'SESSION_LIMIT',
    message: "cannot fork 'd3': its child would be 4 forks deep, and the limit is 3 (limits.maxDepth)",
    data: { session: 'd3', limit: 'maxDepth', depth: 4 },
  });
  await expect(at.delegate({ task: 'x', name: 'd4' })).rejects.toMatchObject({ code: 'SESSION_LIMIT' });
  expect(home.store.sessions.find('d4')).toBeUndefined();
});

test('by default a session has at most 32 unfinished children, and its tree 64; Infinity lifts each limit', async () => {
  await using home = await scriptedDeck([]);
  const fork = async (from: Session) => await from.fork({ deliver: 'merge', onUnmerged: 'keep' });
  const main = await home.deck.session('main');
  for (let i = 0; i < 31; i += 1) await fork(main);
  const last = await fork(main);
  await expect(fork(main)).rejects.toMatchObject({
    code: 'SESSION_LIMIT',
    message:
      "cannot fork 'main': 32 of its children are unfinished, and the limit is 32 (limits.maxChildren)",
  });
  // A fork that reports to no session does not count.
  const aside = await main.fork({ onUnmerged: 'keep' });
  for (let i = 0; i < 32; i += 1) await fork(i < 16 ? aside : last);
  const tree =
    "cannot fork 'main-side': 64 children below 'main' are unfinished, and the limit is 64 (limits.maxTree)";
  const side = await main.fork({ name: 'main-side', onUnmerged: 'keep' });
  await expect(fork(side)).rejects.toMatchObject({
    code: 'SESSION_LIMIT',
    message: tree,
    data: { limit: 'maxTree', root: 'main', children: 64 },
  });
  // Another tree has its own count.
  await fork(await home.deck.session('other'));
  const limits = { maxChildren: Infinity, maxTree: Infinity, maxDepth: Infinity };
  await using lifted = await openDeck({ store: home.store, limits });
  await fork(await lifted.session('main'));
  let at: Session = await lifted.session(last.name);
  for (let depth = 2; depth <= 4; depth += 1) at = await fork(at);
  expect(home.store.sessions.list({ under: 'main', unfinished: true, all: true })).toHaveLength(68);
});

test('a fork reads as much beside a hundred unfinished children as beside ten', async () => {
  await using home = await scriptedDeck([], { limits: { maxChildren: 1_000, maxTree: 1_000 } });
  const main = await home.deck.session('main');
  const fork = async () => await main.fork({ deliver: 'merge', onUnmerged: 'keep' });
  const parsed = async () => {
    const parse = vi.spyOn(JSON, 'parse');
    try {
      await fork();
      return parse.mock.calls.length;
    } finally {
      parse.mockRestore();
    }
  };
  const until = async (count: number) => {
    while ((await home.store.sessions.unfinished('main')).children < count) await fork();
  };
  await until(10);
  const few = await parsed();
  await until(100);
  expect(await parsed()).toBe(few);
});

test('calls of one answer that delegate at once stay within the limit together', async () => {
  const calls = Array.from({ length: 6 }, (_, i) => ({
    name: 'delegate',
    input: { tasks: [{ task: `part ${i}` }], background: true },
    id: `d${i}`,
  }));
  const wait = tool({ inputSchema: z.object({}), needsApproval: true, execute: async () => 'done' });
  await using home = await scriptedDeck(
    [
      { toolCalls: calls, when: { session: 'main' } },
      { text: 'Started.', when: { session: 'main' } },
      ...Array.from({ length: 6 }, () => ({ toolCalls: [{ name: 'wait', input: {} }] })),
    ],
    { tools: { ...delegationTools(), wait }, limits: { maxChildren: 4 } },
  );
  await (await home.deck.session('main')).run('Go');
  expect(home.store.sessions.list({ parent: 'main', all: true })).toHaveLength(4);
});

test('a session has no more unfinished children than its limit', async () => {
  await using home = await scriptedDeck([{ text: 'Done.' }], { limits: { maxChildren: 2 } });
  const main = await home.deck.session('main');
  const fork = (name: string) => main.fork({ name, deliver: 'merge', onUnmerged: 'keep' });
  const first = await fork('a');
  await fork('b');
  await expect(fork('c')).rejects.toMatchObject({ code: 'SESSION_LIMIT', data: { limit: 'maxChildren' } });
  await first.discard('not needed');
  expect(await fork('c')).toMatchObject({ name: 'c' });
  // The same key is the same child, and no further one.
  await expect(main.fork({ key: 'k', deliver: 'merge' })).rejects.toMatchObject({ code: 'SESSION_LIMIT' });
});

test.each([
  { name: 'a cost without a cost function', budget: { cost: 1 }, says: /no cost function/ },
  { name: 'nothing', budget: { steps: 0 }, says: /steps must be more than 0/ },
  { name: 'no number', budget: { tokens: Number.NaN }, says: /tokens must be more than 0/ },
])('a budget of $name is refused, and no child is created', async ({ budget, says }) => {
  await using home = await scriptedDeck([{ text: 'x' }]);
  const main = await home.deck.session('main');
  await expect(main.delegate({ task: 'Go', name: 'kid', budget })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringMatching(says),
  });
  expect(home.store.sessions.find('kid')).toBeUndefined();
});

test('a deck that limits cost needs a cost function', async () => {
  await expect(scriptedDeck([], { budget: { child: { cost: 1 } } })).rejects.toMatchObject({
    code: 'SESSION_BAD_CONFIG',
    data: { field: 'budget.child.cost' },
  });
  await using home = await scriptedDeck(endless('kid'), { budget: { child: { steps: 1 } }, tools: { step } });
  const main = await home.deck.session('main');
  const [outcome] = await main.delegate({ task: 'Go', name: 'kid' });
  expect(outcome).toMatchObject({ status: 'halted' });
});

test('concurrent model calls of one provider stay within the limit', async () => {
  let now = 0;
  let most = 0;
  await using provider = await startProvider(async () => {
    now += 1;
    most = Math.max(most, now);
    // As many as may run at once meet here, however slowly each gets here; then they could be too many.
    const deadline = performance.now() + 10_000;
    do await sleep(20);
    while (most < 2 && performance.now() < deadline);
    now -= 1;
    return { text: 'Done.' };
  });
  const model = modeOf('compatible').model({ baseURL: provider.url });
  await using home = await scriptedDeck([], {
    model,
    limits: { concurrentCalls: { 'openai-compatible': 2 } },
  });
  const main = await home.deck.session('main');
  const tasks = Array.from({ length: 6 }, (_, i) => ({ task: `task ${i}` }));
  const outcomes = await main.delegate(tasks, { concurrency: 6 });
  expect(outcomes.map(({ status }) => status)).toEqual(tasks.map(() => 'completed'));
  expect(most).toBe(2);
});

test('an engine limits concurrent runs for each depth, and starts higher priority first', async () => {
  const engine = inProcessEngine({ concurrency: 1 });
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  await engine.work(async ({ id }) => {
    order.push(id);
    if (id === 'first') await gate.promise;
  });
  await engine.start({ id: 'first', depth: 1 });
  await engine.start({ id: 'low', depth: 1 });
  await engine.start({ id: 'high', depth: 1, priority: 5 });
  await engine.start({ id: 'below', depth: 2 });
  await expect.poll(() => order).toEqual(['first', 'below']);
  gate.resolve();
  await engine.stop({ drain: true });
  expect(order).toEqual(['first', 'below', 'high', 'low']);
});

test('tools that a child may not call are denied to its own children too, whatever they request', async () => {
  const secret = tool({ inputSchema: z.object({}), execute: async () => 'the secret' });
  const asks = (session: string): ScriptAnswer => ({
    toolCalls: [{ name: 'secret', input: {}, id: `c-${session}` }],
    when: { session },
  });
  await using home = await scriptedDeck(
    [
      asks('kid'),
      { text: 'No.', when: { session: 'kid' } },
      asks('grandkid'),
      { text: 'No.', when: { session: 'grandkid' } },
    ],
    {
      tools: { step, secret },
    },
  );
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', tools: ['step'], onUnmerged: 'keep' });
  await kid.run('Go');
  await expect(kid.fork({ tools: ['step', 'secret'] })).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  // A fork that the runtime did not make says what it likes.
  home.store.lineage.fork('kid', { name: 'grandkid', settings: { tools: ['step', 'secret'] } });
  await (await home.deck.find('grandkid'))?.run('Go');
  for (const session of ['kid', 'grandkid']) {
    const [result] = home.store.entries.read(session, { kind: 'tool-result', own: true });
    expect(isObject(result?.payload) ? result.payload.output : undefined).toEqual({
      type: 'error-text',
      value: "Tool 'secret' may not be used in this session.",
    });
  }
});
