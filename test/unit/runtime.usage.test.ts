import type { LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider';
import { type CostOf, readUsage, type SessionUsage, type UsageSum } from '@tapedeck/runtime';
import { assistant, compaction, type SqliteTapeStore, user } from '@tapedeck/tape';
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test';
import fc from 'fast-check';
import { expect, expectTypeOf, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { scriptedDeck } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const finish = (usage: LanguageModelV4Usage): LanguageModelV4StreamPart => ({
  type: 'finish',
  finishReason: { unified: 'stop', raw: undefined },
  usage,
});

const counts = (
  input: Partial<LanguageModelV4Usage['inputTokens']>,
  output: Partial<LanguageModelV4Usage['outputTokens']>,
): LanguageModelV4Usage => ({
  inputTokens: {
    total: undefined,
    noCache: undefined,
    cacheRead: undefined,
    cacheWrite: undefined,
    ...input,
  },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined, ...output },
});

/** A model that says how much each of its answers took; each in as many finish parts as it has usages. */
function model(modelId: string, ...answers: LanguageModelV4Usage[][]): MockLanguageModelV4 {
  let calls = 0;
  return new MockLanguageModelV4({
    provider: 'acme',
    modelId,
    doStream: async () => {
      const usages = answers[calls] ?? [];
      calls += 1;
      const parts: LanguageModelV4StreamPart[] = [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Hi' },
        { type: 'text-end', id: 't' },
        ...usages.map(finish),
      ];
      return { stream: convertArrayToReadableStream(parts) };
    },
  });
}

const cached = counts({ total: 100, cacheRead: 60, cacheWrite: 10 }, { total: 20 });
const thoughtful = counts({ total: 40 }, { total: 30, reasoning: 25 });

/** An answer as a run would have recorded it. */
const answer = (input: number, meta: object = {}) =>
  assistant('Hi', {
    model: 'm-1',
    usage: { input, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    ...meta,
  });

test('a session’s usage is the sum of its calls, with the last one’s part of the window', async () => {
  using store = openStore();
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  expect(await main.usage()).toEqual({
    session: 'main',
    steps: 0,
    usage: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    total: 0,
    models: [],
  });
  const first = { input: 30, output: 20, reasoning: 0, cacheRead: 60, cacheWrite: 10 };
  const small = model('small', [cached], [cached]);
  await main.run('One', { model: small });
  const once = { steps: 1, usage: first, total: 120 };
  // For one call the sum and the window are equal.
  expect(await main.usage()).toEqual({
    session: 'main',
    ...once,
    window: 120,
    models: [{ model: 'small', ...once }],
  });
  await main.run('Two', { model: model('large', [thoughtful]) });
  await main.run('Three', { model: small });
  const large = { input: 40, output: 5, reasoning: 25, cacheRead: 0, cacheWrite: 0 };
  const twice = { input: 60, output: 40, reasoning: 0, cacheRead: 120, cacheWrite: 20 };
  expect(await main.usage()).toEqual({
    session: 'main',
    steps: 3,
    usage: { input: 100, output: 45, reasoning: 25, cacheRead: 120, cacheWrite: 20 },
    total: 310,
    window: 120,
    models: [
      { model: 'small', steps: 2, usage: twice, total: 240 },
      { model: 'large', steps: 1, usage: large, total: 70 },
    ],
  });
});

test('a step counts once, however many parts of its stream report its usage', async () => {
  using store = openStore();
  await using deck = await openDeck({ store, model: model('small', [cached, cached, cached]) });
  const main = await deck.session('main');
  await main.run('One');
  expect(await main.usage()).toMatchObject({ steps: 1, total: 120 });
});

test.each<{ name: string; cost: CostOf | undefined; sum: number | undefined }>([
  { name: 'none, when the deck does not say', cost: undefined, sum: undefined },
  { name: 'exactly the sum of what the deck says', cost: ({ input }) => input / 8, sum: 7.5 },
  {
    name: 'what the deck says of the models it knows',
    cost: (_, id) => (id === 'large' ? 3 : undefined),
    sum: undefined,
  },
  { name: 'of its model', cost: (_, id) => (id === 'small' ? 0.25 : undefined), sum: 0.5 },
  { name: 'unknown for a cost that is no number', cost: () => Number.NaN, sum: undefined },
  {
    name: 'unknown when the cost function throws, and the answer is still recorded',
    cost: () => {
      throw new Error('no price');
    },
    sum: undefined,
  },
])('the cost is $name', async ({ cost, sum }) => {
  using store = openStore();
  await using deck = await openDeck({
    store,
    model: model('small', [cached], [cached]),
    ...(cost !== undefined && { cost }),
  });
  const main = await deck.session('main');
  for (const text of ['One', 'Two']) expect(await main.run(text)).toMatchObject({ finish: 'stop' });
  const usage = await main.usage();
  expect(usage).toMatchObject({ steps: 2, total: 240 });
  expect(usage.cost).toBe(sum);
  expect(usage.models[0]?.cost).toBe(sum);
});

test('a fork counts no inherited call, and a tree counts each call once', async () => {
  await using home = await scriptedDeck([
    { text: 'One.', usage: { input: 10, output: 1 } },
    { text: 'Two.', usage: { input: 20, output: 2 } },
  ]);
  const main = await home.deck.session('main');
  await main.run('Go');
  const child = await main.fork({ name: 'child' });
  expect(await child.usage()).toMatchObject({ steps: 0, total: 0, models: [] });
  await child.run('Go');
  const grandchild = await child.fork({ name: 'grandchild' });
  await grandchild.run('Go');
  await grandchild.run('On');
  await grandchild.finish();
  await child.finish();
  await main.fork({ name: 'idle' });
  expect(await main.usage()).toMatchObject({ steps: 1, total: 11 });
  expect(await child.usage()).toMatchObject({ steps: 1, total: 11, window: 11 });
  const tree = await main.usage({ tree: true });
  expect(tree).toMatchObject({
    session: 'main',
    steps: 1,
    tree: { steps: 4, usage: { input: 50, output: 5 }, total: 55 },
    children: [
      {
        session: 'child',
        tree: { steps: 3, total: 44 },
        children: [{ session: 'grandchild', steps: 2, total: 33, window: 22, children: [] }],
      },
      { session: 'idle', steps: 0, tree: { steps: 0, total: 0 } },
    ],
  });
  expectTypeOf(tree.tree).toEqualTypeOf<UsageSum>();
  expectTypeOf(tree.children[0]?.tree).toEqualTypeOf<UsageSum | undefined>();
  expect(tree.tree).not.toHaveProperty('cost');
});

test('a tree counts deleted sessions, and has one only above another one, under its ULID', async () => {
  const store = openStore();
  const main = store.sessions.open('main');
  for (const [name, from] of [
    ['left', 'main'],
    ['above', 'main'],
    ['below', 'above'],
  ] as const) {
    store.lineage.fork(from, { name });
    store.entries.append(name, [answer(10)]);
  }
  const { id } = store.sessions.find('above') ?? { id: '' };
  for (const name of ['left', 'above']) store.sessions.update(name, { lifecycle: 'destroyed' });
  // The name is free: it is that of another session now.
  store.lineage.fork('main', { name: 'left' });

  const { children, tree } = await readUsage(store, main, { tree: true });

  const shown = children.map(({ session, total, children: below }) => [
    session,
    total,
    below.map((one) => one.session),
  ]);
  expect(shown).toEqual([
    [id, 11, ['below']],
    ['left', 0, []],
  ]);
  expect(tree).toMatchObject({ steps: 3, total: 33 });
});

test('calls that a rewind hides still count', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('One'), answer(10), user('Two'), answer(20, { cost: 2 })]);
  store.history.rewind('main', 2);
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  expect(await main.usage()).toMatchObject({
    steps: 2,
    usage: { input: 30 },
    total: 32,
    window: 21,
    cost: 2,
  });
  store.entries.append('main', [answer(40)]);
  expect(await main.usage()).toMatchObject({ steps: 3, total: 73, window: 41 });
});

test('a failed call, and a partial answer, have no usage to count', async () => {
  using store = openStore();
  const failing = new MockLanguageModelV4({
    doStream: async () => ({
      stream: convertArrayToReadableStream<LanguageModelV4StreamPart>([
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'I think' },
        { type: 'error', error: new Error('overloaded') },
      ]),
    }),
  });
  await using deck = await openDeck({ store, model: failing });
  const main = await deck.session('main');
  expect(await main.run('Go')).toMatchObject({ finish: 'error' });
  expect([...store.entries.read('main', { kind: 'message' })]).toHaveLength(2);
  expect(await main.usage()).toMatchObject({ steps: 0, total: 0 });
});

test('zero and invalid counts are ignored, and only answers are calls', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [
    user('One', { usage: { input: 1000 }, cost: 5 }),
    assistant('Two', {
      // A fraction counts; a number that no sum can hold exactly does not.
      usage: { input: -5, output: 1.5, reasoning: 'many', cacheRead: 7, cacheWrite: 2 ** 60, more: 9 },
      cost: 'much',
    }),
    assistant('Three', { usage: 12 }),
    assistant('Four', { model: 'm-1' }),
  ]);
  await using deck = await openDeck({ store });
  const sum = {
    steps: 1,
    usage: { input: 0, output: 1.5, reasoning: 0, cacheRead: 7, cacheWrite: 0 },
    total: 8.5,
  };
  expect(await (await deck.session('main')).usage()).toEqual({
    session: 'main',
    ...sum,
    window: 8.5,
    models: [sum],
  });
});

/** A model that reports these counts with each answer. */
function reporting(...[input, output, reasoning, cacheRead, cacheWrite]: number[]): MockLanguageModelV4 {
  const noCache = undefined;
  return new MockLanguageModelV4({
    doStream: async () => ({
      stream: convertArrayToReadableStream<LanguageModelV4StreamPart>([
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Fine.' },
        { type: 'text-end', id: 't' },
        {
          type: 'finish',
          finishReason: { unified: 'stop', raw: undefined },
          usage: {
            inputTokens: { total: input, noCache, cacheRead, cacheWrite },
            outputTokens: { total: output, text: undefined, reasoning },
          },
        },
      ]),
    }),
  });
}

test.each<[string, number[], object]>([
  ['fractions', [10.5, 2.25, 0.25, 0.5, 0], { input: 10, output: 2, reasoning: 0.25, cacheRead: 0.5 }],
  ['no numbers', [Number.NaN, Number.POSITIVE_INFINITY, Number.NaN, 1, 2], { cacheRead: 1, cacheWrite: 2 }],
  ['less than nothing', [-5, -0.5, -1, -1e300, 3], { cacheWrite: 3 }],
  ['more than there can be', [1e300, 1e17, 0.5, 2 ** 60, 1.5], { reasoning: 0.5, cacheWrite: 1.5 }],
])('what a provider reports as %s is recorded as it counts', async (_, counts, expected) => {
  using store = openStore();
  await using deck = await openDeck({ store, model: reporting(...counts) });
  const main = await deck.session('main');
  const usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0, ...expected };
  const total = Object.values(usage).reduce((sum, count) => sum + count);
  expect(await main.run('Go')).toMatchObject({ finish: 'stop', usage });
  expect(await main.usage()).toMatchObject({ steps: 1, usage, total, window: total });
  expect(await main.run('Go on')).toMatchObject({ finish: 'stop', usage });
  expect(await main.usage()).toMatchObject({ steps: 2, total: 2 * total });
  const child = await main.fork({ name: 'child' });
  await child.run('Look');
  expect(store.lineage.merge('child')).toMatchObject({ state: 'merged' });
  const [mark] = [...store.entries.read('main', { kind: 'anchor' })].slice(-1);
  expect(mark?.payload).toMatchObject({ state: { usage } });
  expect([...store.verify()]).toEqual([]);
});

test('a redacted call no longer counts', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [answer(10), answer(20)]);
  store.entries.redact('main', 2, 'a test');
  await using deck = await openDeck({ store });
  expect(await (await deck.session('main')).usage()).toMatchObject({ steps: 1, total: 21 });
});

/** An act on one of the sessions there are. */
const act = fc.record({
  kind: fc.constantFrom('ask', 'ask', 'fork', 'part', 'fresh', 'rewind', 'unrewind', 'merge'),
  who: fc.nat(),
  to: fc.nat(),
});

/** Does an act if it can be done, and returns what it added to what was paid. */
function play(store: SqliteTapeStore, { kind, who, to }: { kind: string; who: number; to: number }): number {
  const sessions = store.sessions.list({ all: true });
  const {
    session: name,
    parent,
    floor,
    head,
  } = sessions[who % sessions.length] ?? { session: '', floor: 0, head: 0 };
  const point = floor + (to % (head - floor + 1));
  if (kind === 'ask') {
    store.entries.append(name, [user('Go'), answer(to % 1000)]);
    return (to % 1000) + 1;
  }
  if (kind === 'fork') store.lineage.fork(name, { cut: point === floor ? 'head' : point });
  else if (kind === 'part')
    store.lineage.fork(name, { inherit: { since: point === floor ? 'head' : point } });
  else if (kind === 'fresh') store.lineage.fork(name, { inherit: 'nothing' });
  else if (kind === 'rewind') store.history.rewind(name, point === floor ? head : point);
  else if (kind === 'unrewind' && [...store.entries.read(name, { kind: 'rewind', own: true })].length > 0)
    store.history.unrewind(name);
  else if (kind === 'merge' && parent !== undefined) store.lineage.merge(name);
  return 0;
}

const all = ({ children = [], ...own }: SessionUsage): SessionUsage[] => [own, ...children.flatMap(all)];

test('in any history of forks, rewinds and merges each call counts once, where it was written', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 40 }), async (acts) => {
      using store = openStore();
      const root = store.sessions.open('main');
      let paid = 0;
      for (const one of acts) paid += play(store, one);
      const tree = await readUsage(store, root, { tree: true });
      expect(tree.tree.total).toBe(paid);
      const each = all(tree);
      expect(each.map(({ session }) => session).sort()).toEqual(
        store.sessions
          .list({ all: true })
          .map(({ session: name }) => name)
          .sort(),
      );
      expect(each.reduce((sum, { total }) => sum + total, 0)).toBe(paid);
      for (const { session, total } of each)
        expect((await readUsage(store, store.sessions.find(session) ?? root)).total).toBe(total);
    }),
    { numRuns: sized(20, 20, 2_000) },
  );
});

test('the usage of a summary counts, but not toward the window', async () => {
  using store = openStore();
  store.sessions.open('main');
  const usage = { input: 100, output: 10, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  store.entries.append('main', [user('Hi'), { ...assistant('Hello.'), meta: { model: 'a', usage } }]);
  const state = { summary: 'They greeted each other.', range: [2, 3] as [number, number] };
  store.entries.append('main', [
    { ...compaction(state), meta: { model: 'b', usage: { ...usage, input: 7 } } },
  ]);
  const info = store.sessions.find('main');
  if (info === undefined) throw new Error('main is there');
  expect(await readUsage(store, info)).toMatchObject({
    steps: 2,
    usage: { input: 107, output: 20 },
    window: 110,
    models: [{ model: 'a' }, { model: 'b', usage: { input: 7 } }],
  });
});
