import type { DeckTool } from '@tapedeck/runtime';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { entryLines, eventLine, eventsOf, scriptedDeck } from '../support/scripted.ts';

const call = (id: string, name: string, input: object = {}) => ({ id, name, input });
const results = (store: SqliteTapeStore) => entryLines(store.entries.read('main', { kind: 'tool-result' }));

/** A tool that ends only when this many calls of it are running, and counts how many ever were. */
function meeting(size: number) {
  const inputs: unknown[] = [];
  const all = Promise.withResolvers<void>();
  let now = 0;
  let most = 0;
  const meet = tool({
    inputSchema: z.strictObject({ n: z.number() }),
    execute: async (input) => {
      inputs.push(input);
      now += 1;
      most = Math.max(most, now);
      if (inputs.length >= size) all.resolve();
      await all.promise;
      now -= 1;
      return input.n;
    },
  });
  return { meet, inputs, most: () => most };
}

test('calls run side by side when one of them requests it, and no tool receives _parallel', async () => {
  const { meet, inputs, most } = meeting(3);
  const calls = [
    call('c1', 'meet', { n: 1 }),
    call('c2', 'meet', { n: 2, _parallel: true }),
    call('c3', 'meet', { n: 3 }),
  ];
  await using home = await scriptedDeck([{ toolCalls: calls }, { text: 'Met.' }], { tools: { meet } });
  const run = (await home.deck.session('main')).run('Meet');
  expect(await run).toMatchObject({ finish: 'stop', text: 'Met.' });
  expect([most(), inputs]).toEqual([3, [{ n: 1 }, { n: 2 }, { n: 3 }]]);
  expect(results(home.store)).toHaveLength(3);
  expect(await eventsOf(run)).toContainEqual(
    expect.objectContaining({ type: 'tool-batch-started', parallel: true }),
  );
});

test('concurrent calls stay within the limit of the deck', async () => {
  const { meet, most } = meeting(2);
  const calls = [1, 2, 3, 4, 5, 6, 7].map((n) => call(`c${n}`, 'meet', { n, _parallel: true }));
  await using home = await scriptedDeck([{ toolCalls: calls }, { text: 'Met.' }], {
    tools: { meet },
    limits: { concurrentTools: 2 },
  });
  expect(await (await home.deck.session('main')).run('Meet')).toMatchObject({ finish: 'stop' });
  expect(most()).toBe(2);
});

test('a tool with its own argument _parallel receives it', async () => {
  const seen: unknown[] = [];
  const own = tool({
    inputSchema: z.object({ _parallel: z.boolean() }),
    execute: async (input) => {
      seen.push(input);
      return 'ok';
    },
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [call('c1', 'own', { _parallel: true })] }, { text: 'Ok.' }],
    {
      tools: { own },
    },
  );
  await (await home.deck.session('main')).run('Go');
  expect(seen).toEqual([{ _parallel: true }]);
});

test('a call that fails does not stop calls that run beside it', async () => {
  const ran: string[] = [];
  const act = tool({
    inputSchema: z.object({ fails: z.boolean().optional() }),
    execute: async ({ fails }, { toolCallId }) => {
      ran.push(toolCallId);
      if (fails === true) throw new Error('broken');
      return 'ok';
    },
  });
  const calls = [call('c1', 'act', { fails: true, _parallel: true }), call('c2', 'act'), call('c3', 'act')];
  await using home = await scriptedDeck([{ toolCalls: calls }, { text: 'Hm.' }], {
    tools: { act },
    limits: { concurrentTools: 1 },
  });
  const run = (await home.deck.session('main')).run('Act');
  const events = (await eventsOf(run)).map(eventLine);
  expect(ran).toEqual(['c1', 'c2', 'c3']);
  expect(results(home.store)).toEqual(['act c1 → error-text broken', 'act c2 → text ok', 'act c3 → text ok']);
  expect(events).not.toContain('tool-batch-halted');
});

test('arguments are checked by the tool’s own schema: it receives the parsed value', async () => {
  const seen: unknown[] = [];
  const book = tool({
    inputSchema: z.object({
      day: z.string().transform((text) => text.toUpperCase()),
      seats: z.number().default(2),
      name: z.string().refine((text) => text !== 'missing', 'this guest cannot book'),
    }),
    execute: async (input) => {
      seen.push(input);
      return 'booked';
    },
  });
  const calls = [
    call('c1', 'book', { day: 'mo', name: 'ann' }),
    call('c2', 'book', { day: 'tu', name: 'missing' }),
  ];
  await using home = await scriptedDeck([{ toolCalls: calls }, { text: 'Booked.' }], { tools: { book } });
  await (await home.deck.session('main')).run('Book');
  expect(seen).toEqual([{ day: 'MO', seats: 2, name: 'ann' }]);
  const [well, badly] = results(home.store);
  expect(well).toBe('book c1 → text booked');
  expect(badly).toMatch(/^book c2 → error-text .*this guest cannot book/s);
});

test('a check of arguments that throws or never ends is an error result, and the tool is not run', async () => {
  let runs = 0;
  const execute = async () => {
    runs += 1;
    return 'ran';
  };
  const throwing = tool({
    inputSchema: z.object({}).refine(() => {
      throw new Error('the check is broken');
    }),
    execute,
  });
  const endless: DeckTool = {
    ...tool({ inputSchema: z.object({}).refine(() => new Promise<boolean>(() => {})), execute }),
    timeoutMs: 20,
  };
  const calls = [call('c1', 'throwing', { _parallel: true }), call('c2', 'endless')];
  await using home = await scriptedDeck([{ toolCalls: calls }, { text: 'Hm.' }], {
    tools: { throwing, endless },
  });
  expect(await (await home.deck.session('main')).run('Go')).toMatchObject({ finish: 'stop' });
  expect(runs).toBe(0);
  expect(results(home.store).sort()).toEqual([
    'endless c2 → error-text Checking the arguments took longer than 20 ms.',
    'throwing c1 → error-text the check is broken',
  ]);
});

test('a tool that takes too long is abandoned, by its own time or the deck’s, and its signal aborted', async () => {
  const told: string[] = [];
  const sleep: DeckTool = tool({
    inputSchema: z.object({}),
    execute: (_, { abortSignal, toolCallId }) =>
      new Promise<string>(() => abortSignal?.addEventListener('abort', () => told.push(toolCallId))),
  });
  const quick: DeckTool = tool({ inputSchema: z.object({}), execute: async () => 'done' });
  const tools = {
    sleep,
    nap: { ...sleep, timeoutMs: 100 },
    quick: { ...quick, timeoutMs: Number.POSITIVE_INFINITY },
  };
  const calls = [call('c1', 'sleep', { _parallel: true }), call('c2', 'nap'), call('c3', 'quick')];
  await using home = await scriptedDeck([{ toolCalls: calls }, { text: 'Late.' }], {
    tools,
    limits: { toolTimeoutMs: 400 },
  });
  expect(await (await home.deck.session('main')).run('Sleep')).toMatchObject({ finish: 'stop' });
  expect(results(home.store)).toEqual([
    'quick c3 → text done',
    'nap c2 → error-text The tool took longer than 100 ms and was abandoned; its outcome is unknown.',
    'sleep c1 → error-text The tool took longer than 400 ms and was abandoned; its outcome is unknown.',
  ]);
  expect(told).toEqual(['c2', 'c1']);
});

test('a run without a step limit takes any number of steps', async () => {
  const count = tool({ inputSchema: z.object({}), execute: async () => 'one more' });
  const answers = Array.from({ length: 14 }, (_, i) => ({ toolCalls: [call(`c${i}`, 'count')] }));
  await using home = await scriptedDeck([...answers, { text: 'Fourteen.' }], {
    tools: { count },
    limits: { maxSteps: Number.POSITIVE_INFINITY },
  });
  expect(await (await home.deck.session('main')).run('Count')).toMatchObject({ finish: 'stop', steps: 15 });
});

test('a model that calls tools without end is halted after ten steps, and that is recorded', async () => {
  const count = tool({ inputSchema: z.object({}), execute: async () => 'one more' });
  const answers = Array.from({ length: 14 }, (_, i) => ({ toolCalls: [call(`c${i}`, 'count')] }));
  await using home = await scriptedDeck(answers, { tools: { count } });
  const main = await home.deck.session('main');
  const run = main.run('Count');
  expect(await run).toMatchObject({ finish: 'halted', steps: 10 });
  expect((await eventsOf(run)).at(-1)).toEqual({
    type: 'session-completed',
    finish: 'halted',
    haltedAtLimit: true,
  });
  expect([...home.store.entries.read('main')].at(-1)).toMatchObject({
    name: 'run/halted',
    payload: { steps: 10 },
  });
  expect(await main.run(undefined, { maxSteps: 1 })).toMatchObject({ finish: 'halted', steps: 1 });
});

test('a run without tools sends none, and runs none', async () => {
  const add = tool({ inputSchema: z.object({}), execute: async () => 3 });
  await using home = await scriptedDeck([{ toolCalls: [call('c1', 'add')] }, { text: 'No tools.' }], {
    tools: { add },
  });
  await (await home.deck.session('main')).run('Add', { useTools: false });
  expect(results(home.store)[0]).toContain("Unknown tool 'add'");
});

test('a tool whose schema cannot be sent is refused before anything is written', async () => {
  const odd = tool({ inputSchema: z.object({ at: z.bigint() }), execute: async () => 'ok' });
  await using home = await scriptedDeck([{ text: 'Fine.' }], { tools: { odd } });
  const main = await home.deck.session('main');
  const head = (await main.info()).head;
  await expect(main.run('Hi')).rejects.toMatchObject({
    code: 'SESSION_BAD_CONFIG',
    data: { field: 'tools.odd' },
  });
  expect((await main.info()).head).toBe(head);
  expect(await main.run('Hi', { tools: {} })).toMatchObject({ text: 'Fine.' });
});

const write: DeckTool = {
  ...tool({
    inputSchema: z.object({ file: z.string(), from: z.array(z.string()).optional() }),
    execute: async () => 'ok',
  }),
  paths: { read: ['from'], write: ['file'], display: 'file' },
};

test('a result records which paths its call touched, as the tool declares them', async () => {
  const calls = [
    call('c1', 'write', { file: 'a.ts', from: ['b.ts', 'c.ts'] }),
    call('c2', 'write', { file: 7 }),
  ];
  await using home = await scriptedDeck([{ toolCalls: calls }, { text: 'Ok.' }], { tools: { write } });
  await (await home.deck.session('main')).run('Write');
  const metas = [...home.store.entries.read('main', { kind: 'tool-result' })].map(({ meta }) => meta.paths);
  // The second was not run: it touched nothing, and leaves no doubt about that.
  expect(metas).toEqual([
    { read: ['b.ts', 'c.ts'], write: ['a.ts'] },
    { read: [], write: [] },
  ]);
});

test('two children that wrote one file are a conflict, and the check is complete', async () => {
  await using home = await scriptedDeck(
    [{ toolCalls: [call('c1', 'write', { file: 'a.ts' })] }, { text: 'Written.' }],
    {
      tools: { write },
    },
  );
  const main = await home.deck.session('main');
  await main.delegate(
    [
      { task: 'Write a', name: 'one' },
      { task: 'Write a, too', name: 'two' },
    ],
    { order: 'spawn' },
  );
  const merges = [...home.store.entries.read('main', { kind: 'anchor' })].filter(({ name }) =>
    name?.startsWith('merge/'),
  );
  const states = merges.map(({ payload }) => (isObject(payload) ? payload.state : undefined));
  expect(states).toMatchObject([
    { complete: true, conflicts: [] },
    { complete: true, conflicts: [{ what: 'file:a.ts', via: 'one' }] },
  ]);
});

test('a call is displayed by the argument that its tool names for that', async () => {
  const copy = {
    ...tool({
      inputSchema: z.object({ from: z.string(), to: z.string() }),
      execute: async () => 'copied',
    }),
    paths: { read: ['from'], write: ['to'], display: 'to' },
  };
  const call = { name: 'copy', input: { from: 'a.txt', to: 'b.txt' }, id: 'c1' };
  await using home = await scriptedDeck([{ toolCalls: [call] }, { text: 'Done.' }], { tools: { copy } });
  const events = await eventsOf((await home.deck.session('main')).run('Copy'));
  const shown = events.filter(({ type }) => type === 'tool-detected' || type === 'tool-started');
  expect(shown).toMatchObject([{ display: 'b.txt' }, { display: 'b.txt' }]);
});

test('a tool that fails without declaring its paths leaves the check of conflicts incomplete', async () => {
  const fail = tool({
    inputSchema: z.object({}),
    execute: async (): Promise<string> => {
      throw new Error('no disk');
    },
  });
  await using home = await scriptedDeck([{ toolCalls: [call('c1', 'fail')] }, { text: 'Oh.' }], {
    tools: { fail },
  });
  const main = await home.deck.session('main');
  const child = await main.fork({ task: 'Try.' });
  await child.run();
  expect(await child.finish()).toMatchObject({ complete: false });
});
