import { note, user } from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { entryLines, scriptedDeck } from '../support/scripted.ts';

const look = tool({ inputSchema: z.object({}), execute: async () => 'seen' });

const startOf = (payload: unknown) => payload as { settings?: object; terms?: object };

test.each([
  {
    inherit: undefined,
    inherits: ['user: one', 'assistant: 1', 'user: two', 'assistant: 2', 'user: three', 'assistant: 3'],
  },
  {
    inherit: 'all' as const,
    inherits: ['user: one', 'assistant: 1', 'user: two', 'assistant: 2', 'user: three', 'assistant: 3'],
  },
  { inherit: { last: 3 }, inherits: ['assistant: 2', 'user: three', 'assistant: 3'] },
  {
    inherit: { last: 99 },
    inherits: ['user: one', 'assistant: 1', 'user: two', 'assistant: 2', 'user: three', 'assistant: 3'],
  },
  { inherit: 'nothing' as const, inherits: [] },
])('a child inherits what `inherit` says: $inherit', async ({ inherit, inherits }) => {
  await using home = await scriptedDeck([{ text: '1' }, { text: '2' }, { text: '3' }]);
  const main = await home.deck.session('main');
  for (const said of ['one', 'two', 'three']) await main.run(said);
  const kid = await main.fork({ ...(inherit !== undefined && { inherit }), onUnmerged: 'keep' });
  const lines = entryLines(home.store.entries.read(kid.name)).filter((line) => !line.startsWith('anchor'));
  expect(lines).toEqual(inherits);
});

test('`last` never separates a call from its result', async () => {
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'look', input: {}, id: 'l1' }] }, { text: 'I saw it.' }, { text: 'Child here.' }],
    { tools: { look } },
  );
  const main = await home.deck.session('main');
  await main.run('Look');
  const kid = await main.fork({ inherit: { last: 2 }, onUnmerged: 'keep' });
  expect(entryLines(home.store.entries.read(kid.name)).slice(0, 3)).toEqual([
    'assistant: [look l1]',
    'look l1 → text seen',
    'assistant: I saw it.',
  ]);
  expect(await kid.run('Go')).toMatchObject({ finish: 'stop' });
  for (const last of [0, 1.5, -1])
    await expect(main.fork({ inherit: { last } })).rejects.toMatchObject({ code: 'TAPE_BAD_POINT' });
});

test('instructions and settings of a child are stored with it and inherited by its own children', async () => {
  await using home = await scriptedDeck([], { tools: { look } });
  const main = await home.deck.session('main');
  const kid = await main.fork({
    name: 'kid',
    instructions: 'You count.',
    model: 'openai-compatible/small',
    tools: ['look'],
    budget: { steps: 3 },
    onUnmerged: 'keep',
  });
  const below = await kid.fork({ name: 'below', onUnmerged: 'keep' });
  const start = (name: string) =>
    startOf(
      [...home.store.entries.read(name, { own: true })].find((entry) => entry.name === 'fork/start')?.payload,
    );
  const settings = { instructions: 'You count.', model: 'openai-compatible/small', tools: ['look'] };
  expect(start(kid.name)).toMatchObject({ settings, terms: { budget: { steps: 3 }, context: 'whole' } });
  expect(start(below.name).settings).toEqual(settings);
  expect(start(below.name).terms).toEqual({ context: 'whole' });
});

test('a child runs with the model that it was forked with, until it gets another', async () => {
  await using home = await scriptedDeck([{ text: 'from the deck' }]);
  const model = home.script([{ text: 'from the fork' }, { text: 'and again' }]);
  const main = await home.deck.session('main');
  await main.run('Hi', { model: home.script([{ text: 'from the run' }]) });
  const kid = await main.fork({ model, onUnmerged: 'keep' });
  expect(await kid.run('Hi')).toMatchObject({ text: 'from the fork' });
  expect(await kid.run('Hi')).toMatchObject({ text: 'and again' });
  const other = await main.fork({ onUnmerged: 'keep' });
  expect(await other.run('Hi')).toMatchObject({ text: 'from the run' });
  expect(await other.run('Hi', { model: home.script([{ text: 'no' }, { text: 'told' }]) })).toMatchObject({
    text: 'told',
  });
});

test('two children of one point are independent, and both see everything before it', async () => {
  await using home = await scriptedDeck([
    { text: 'Yes.', when: { session: 'main' } },
    { text: 'First.', when: { session: 'a' } },
    { text: 'Second.', when: { session: 'b' } },
  ]);
  const main = await home.deck.session('main');
  await main.run('Ready?');
  const [a, b] = [
    await main.fork({ name: 'a', onUnmerged: 'keep' }),
    await main.fork({ name: 'b', onUnmerged: 'keep' }),
  ];
  await a.run('You are first');
  await b.run('You are second');
  for (const [name, others] of [
    ['a', 'Second'],
    ['b', 'First'],
  ] as const) {
    const lines = entryLines(home.store.entries.read(name)).join('\n');
    expect(lines).toContain('user: Ready?\nassistant: Yes.');
    expect(lines).not.toContain(others);
  }
});

test('lookups between a call and its children work in another process', async () => {
  await using home = await scriptedDeck([{ text: 'ok' }]);
  const main = await home.deck.session('main');
  await main.delegate(
    { task: 'Look', name: 'kid' },
    { by: { run: 'r1', toolCallId: 'c9', blocking: false } },
  );
  expect(home.store.sessions.find('kid')).toMatchObject({
    parent: 'main',
    parentId: main.id,
    spawnCall: 'c9',
    task: 'completed',
  });
  expect(home.store.sessions.find(`worker:${home.store.sessions.find('kid')?.id}`)?.session).toBe('kid');
  expect(
    home.store.sessions.list({ parent: 'main', all: true }).filter(({ spawnCall }) => spawnCall === 'c9'),
  ).toHaveLength(1);
});

test('an intention that is too large is refused, and no child is created', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [user('hi'), note('x', {})]);
  const nextSteps = 'x'.repeat(17 * 1024 * 1024);
  await expect(main.fork({ name: 'kid', task: nextSteps })).rejects.toMatchObject({
    code: 'TAPE_BAD_ENTRY',
  });
  expect(home.store.sessions.find('kid')).toBeUndefined();
  expect(home.store.sessions.list({ parent: 'main', all: true })).toEqual([]);
});

test('the same key is the same child, whatever the parent has added since; for another request it is refused', async () => {
  await using home = await scriptedDeck([{ text: 'a' }, { text: 'b' }]);
  const main = await home.deck.session('main');
  const first = await main.fork({ key: 'k', instructions: 'You count.', onUnmerged: 'keep' });
  await main.run('more');
  expect((await main.fork({ key: 'k', instructions: 'You count.', onUnmerged: 'keep' })).id).toBe(first.id);
  await expect(main.fork({ key: 'k', instructions: 'You sing.' })).rejects.toMatchObject({
    code: 'TAPE_KEY_CONFLICT',
  });
});
