import { SessionError } from '@tapedeck/runtime';
import { assistant, type Entry, openTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { fixedClock } from '../support/clock.ts';
import { openDeck } from '../support/deck.ts';
import { entryLines, eventLine, eventsOf, scriptedDeck } from '../support/scripted.ts';
import { slowModel } from '../support/slow-model.ts';
import { openStore } from '../support/store.ts';
import { tempHome } from '../support/temp-home.ts';

const add = tool({
  description: 'Add two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
});
const fail = tool({
  inputSchema: z.object({}),
  execute: async (): Promise<string> => {
    throw new Error('disk is full');
  },
});
const sum = (id: string, a = 1, b = 2) => ({ name: 'add', input: { a, b }, id });
const ownLines = (entries: Iterable<Entry>) => entryLines(entries).slice(1);

test('a run appends the input, the answer and nothing else', async () => {
  await using home = await scriptedDeck([{ text: 'Hello there.', usage: { input: 7, output: 2 } }]);
  const main = await home.deck.session('main');
  const result = await main.run('Hi');
  expect(result).toMatchObject({
    session: 'main',
    text: 'Hello there.',
    finish: 'stop',
    steps: 1,
    usage: { input: 7, output: 2, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    from: 2,
    to: 3,
  });
  expect(ownLines(home.store.entries.read('main'))).toEqual(['user: Hi', 'assistant: Hello there.']);
  const [, asked, answered] = home.store.entries.read('main');
  expect(asked?.meta).toEqual({ run: result.run, source: 'user', place: expect.any(Object) });
  expect(answered?.meta).toMatchObject({ run: result.run, step: 1, provider: 'script', finish: 'stop' });
  expect(answered?.meta).toMatchObject({ usage: { input: 7, output: 2 } });
});

test('without input a run continues from the tail', async () => {
  await using home = await scriptedDeck([{ text: 'Yes.' }]);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [user('Are you there?')]);
  expect(await main.run()).toMatchObject({ text: 'Yes.', from: 3, to: 3 });
});

test('texts and events arrive in the order in which they occur', async () => {
  await using home = await scriptedDeck(
    [{ text: 'I will add.', toolCalls: [sum('c1')] }, { text: 'It is 3.' }],
    { tools: { add } },
  );
  const run = (await home.deck.session('main')).run('1 + 2?');
  const expected = [
    'run-started',
    'text I ',
    'text will ',
    'text add.',
    'tool-detected add',
    'tool-batch-started',
    'tool-started add',
    'tool-completed add well',
    'tool-batch-completed',
    'iteration-completed 1 and on',
    'text It ',
    'text is ',
    'text 3.',
    'iteration-completed 2',
    'session-completed stop',
  ];
  expect((await eventsOf(run)).map(eventLine)).toEqual(expected);
  // A late reader reads all of it too.
  expect((await eventsOf(run)).map(eventLine)).toEqual(expected);
  expect((await eventsOf(run.textStream())).join('')).toBe('I will add.It is 3.');
});

test('a call is committed before it runs, and its result right after', async () => {
  using home = tempHome();
  const seen: string[][] = [];
  const look = tool({
    inputSchema: z.object({}),
    execute: async () => {
      // A connection of its own sees what is committed, and nothing else.
      using other = openTapeStore(home.db, { readonly: true });
      seen.push(ownLines(other.entries.read('main')));
      return 'looked';
    },
  });
  await using scripted = await scriptedDeck(
    [
      {
        toolCalls: [
          { name: 'look', input: {}, id: 'c1' },
          { name: 'look', input: {}, id: 'c2' },
        ],
      },
      { text: 'Done.' },
    ],
    { store: home.open(), tools: { look } },
  );
  await (await scripted.deck.session('main')).run('Look twice');
  const asked = ['user: Look twice', 'assistant: [look c1] [look c2]'];
  expect(seen).toEqual([asked, [...asked, 'look c1 → text looked']]);
  expect(ownLines(scripted.store.entries.read('main'))).toEqual([
    ...asked,
    'look c1 → text looked',
    'look c2 → text looked',
    'assistant: Done.',
  ]);
});

test('an unknown tool is an error result, and the run continues', async () => {
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'subtract', input: {}, id: 'c1' }] }, { text: 'Then not.' }],
    { tools: { add } },
  );
  const result = await (await home.deck.session('main')).run('3 - 1?');
  expect(result).toMatchObject({ finish: 'stop', text: 'Then not.', steps: 2 });
  expect(ownLines(home.store.entries.read('main'))).toEqual([
    'user: 3 - 1?',
    'assistant: [subtract c1]',
    "subtract c1 → error-text Unknown tool 'subtract'.",
    'assistant: Then not.',
  ]);
});

test('a tool is found by its own name only: toString is no tool', async () => {
  await using home = await scriptedDeck([
    { toolCalls: [{ name: 'toString', input: {}, id: 'c1' }] },
    { text: 'Well.' },
  ]);
  await (await home.deck.session('main')).run('Try');
  expect(ownLines(home.store.entries.read('main'))[2]).toContain("Unknown tool 'toString'");
});

test('arguments that do not fit the schema are an error result, and the tool is not run', async () => {
  let runs = 0;
  const counting = tool({
    inputSchema: z.object({ a: z.number() }),
    execute: async () => {
      runs += 1;
      return runs;
    },
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'counting', input: { a: 'one' }, id: 'c1' }] }, { text: 'I see.' }],
    { tools: { counting } },
  );
  expect(await (await home.deck.session('main')).run('Count')).toMatchObject({ finish: 'stop' });
  expect(runs).toBe(0);
  const [, , asked, answered] = home.store.entries.read('main');
  expect(asked?.payload).toMatchObject({ content: [{ toolCallId: 'c1', input: { a: 'one' } }] });
  expect(answered?.payload).toMatchObject({ toolCallId: 'c1', output: { type: 'error-text' } });
});

test('a tool that throws ends its batch: later calls do not run, and every call has its result', async () => {
  await using home = await scriptedDeck(
    [
      { toolCalls: [sum('c1'), { name: 'fail', input: {}, id: 'c2' }, sum('c3'), sum('c4')] },
      { text: 'Oh.' },
    ],
    { tools: { add, fail } },
  );
  const run = (await home.deck.session('main')).run('Go');
  const events = (await eventsOf(run)).map(eventLine);
  expect(ownLines(home.store.entries.read('main'))).toEqual([
    'user: Go',
    'assistant: [add c1] [fail c2] [add c3] [add c4]',
    'add c1 → json 3',
    'fail c2 → error-text disk is full',
    'add c3 → error-text Not run: an earlier call of this batch failed.',
    'add c4 → error-text Not run: an earlier call of this batch failed.',
    'assistant: Oh.',
  ]);
  expect(events.filter((line) => line.startsWith('tool-'))).toEqual([
    ...['add', 'fail', 'add', 'add'].map((name) => `tool-detected ${name}`),
    'tool-batch-started',
    'tool-started add',
    'tool-completed add well',
    'tool-started fail',
    'tool-completed fail badly',
    'tool-batch-halted',
    'tool-completed add badly',
    'tool-completed add badly',
    'tool-batch-completed',
  ]);
});

test('the last preliminary result of a tool counts', async () => {
  const climb = tool({
    inputSchema: z.object({}),
    execute: async function* () {
      yield 'half way';
      yield 'at the top';
    },
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'climb', input: {}, id: 'c1' }] }, { text: 'Up.' }],
    {
      tools: { climb },
    },
  );
  await (await home.deck.session('main')).run('Climb');
  expect(ownLines(home.store.entries.read('main'))[2]).toBe('climb c1 → text at the top');
});

test('a tool may set its own output for the model', async () => {
  const count = tool({
    inputSchema: z.object({}),
    execute: async () => ({ rows: 1200 }),
    toModelOutput: ({ output }) => ({ type: 'text', value: `${output.rows} rows` }),
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'count', input: {}, id: 'c1' }] }, { text: 'Many.' }],
    { tools: { count } },
  );
  const events = await eventsOf((await home.deck.session('main')).run('Count'));
  expect(ownLines(home.store.entries.read('main'))[2]).toBe('count c1 → text 1200 rows');
  expect(events).toContainEqual(
    expect.objectContaining({ type: 'tool-completed', output: { rows: 1200 }, success: true }),
  );
});

test('a tool that returns nothing has null as its result', async () => {
  const beep = tool({ inputSchema: z.object({}), execute: async () => undefined });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'beep', input: {}, id: 'c1' }] }, { text: 'Beeped.' }],
    {
      tools: { beep },
    },
  );
  expect(await (await home.deck.session('main')).run('Beep')).toMatchObject({ finish: 'stop' });
  expect(ownLines(home.store.entries.read('main'))[2]).toBe('beep c1 → json null');
});

test('a result without a JSON form is an error result, and every call keeps its result', async () => {
  const huge = tool({ inputSchema: z.object({}), execute: async () => ({ n: 10n }) });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'huge', input: {}, id: 'c1' }, sum('c2')] }, { text: 'Hm.' }],
    { tools: { huge, add } },
  );
  expect(await (await home.deck.session('main')).run('Go')).toMatchObject({ finish: 'stop' });
  expect(ownLines(home.store.entries.read('main')).slice(2)).toEqual([
    expect.stringMatching(/^huge c1 → error-text .*BigInt/),
    'add c2 → error-text Not run: an earlier call of this batch failed.',
    'assistant: Hm.',
  ]);
});

test('a run over its step limit is halted, with all results on the tape', async () => {
  await using home = await scriptedDeck(
    [1, 2, 3].map((n) => ({ toolCalls: [sum(`c${n}`)] })),
    { tools: { add } },
  );
  const run = (await home.deck.session('main')).run('Add on', { maxSteps: 2 });
  const events = (await eventsOf(run)).map(eventLine);
  expect(await run).toMatchObject({ finish: 'halted', steps: 2, to: 7 });
  expect(ownLines(home.store.entries.read('main')).slice(-2)).toEqual([
    'add c2 → json 3',
    'event run/halted',
  ]);
  expect(events.slice(-2)).toEqual(['iteration-completed 2', 'session-completed halted at the limit']);
  expect(home.store.sessions.find('main')).toMatchObject({ settled: 7, head: 7 });
});

test('a session has one run at a time, by whatever handle', async () => {
  await using home = await scriptedDeck([{ text: 'First.', delayMs: 500 }, { text: 'Second.' }]);
  const main = await home.deck.session('main');
  const first = main.run('One');
  expect(main.attach()).toBe(first);
  await expect(main.run('Two')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  // Until it has begun, another handle could be quicker.
  for await (const { type } of first) if (type === 'run-started') break;
  const other = await home.deck.session('main');
  await expect(other.run('Three')).rejects.toMatchObject({
    code: 'SESSION_BUSY',
    data: { session: 'main', run: first.id },
  });
  expect(await first).toMatchObject({ text: 'First.' });
  expect(main.attach()).toBeUndefined();
  expect(await other.run('Four')).toMatchObject({ text: 'Second.' });
  expect(ownLines(home.store.entries.read('main'))).toEqual([
    'user: One',
    'assistant: First.',
    'user: Four',
    'assistant: Second.',
  ]);
});

test('a model that fails ends the run with an error that is recorded', async () => {
  await using home = await scriptedDeck([{ error: 'overloaded' }, { text: 'Better now.' }]);
  const main = await home.deck.session('main');
  const run = main.run('Hi');
  const events = (await eventsOf(run)).map(eventLine);
  const result = await run;
  expect(result).toMatchObject({ finish: 'error', text: '', steps: 1, from: 2, to: 3 });
  expect(result.error).toBeInstanceOf(SessionError);
  expect(result.error).toMatchObject({ code: 'SESSION_MODEL_FAILED', data: { session: 'main' } });
  expect(result.error?.message).toContain('overloaded');
  expect(events).toEqual(['run-started', 'session-completed error']);
  const [, , failed] = home.store.entries.read('main');
  expect(failed).toMatchObject({ kind: 'event', name: 'run/error', payload: { message: 'overloaded' } });
  expect(await main.run()).toMatchObject({ finish: 'stop', text: 'Better now.' });
});

test('calls without an answer get a recorded result, and never run', async () => {
  let runs = 0;
  const pay = tool({
    inputSchema: z.object({}),
    execute: async () => {
      runs += 1;
      return 'paid';
    },
  });
  await using home = await scriptedDeck([{ text: 'I cannot tell.' }], { tools: { pay } });
  home.store.sessions.open('main');
  home.store.entries.append('main', [
    user('Pay both'),
    assistant([toolCall('c1', 'pay', {}), toolCall('c2', 'pay', {})]),
  ]);
  home.store.entries.append('main', [toolResult({ toolCallId: 'c1', toolName: 'pay' }, 'paid')]);
  const main = await home.deck.session('main');
  const result = await main.run('Did it work?');
  expect(runs).toBe(0);
  expect(ownLines(home.store.entries.read('main'))).toEqual([
    'user: Pay both',
    'assistant: [pay c1] [pay c2]',
    'pay c1 → text paid',
    'pay c2 → error-text Outcome unknown: aborted by host restart.',
    'user: Did it work?',
    'assistant: I cannot tell.',
  ]);
  expect([...home.store.entries.read('main', { from: 5, to: 5 })][0]?.meta).toEqual({ source: 'repair' });
  expect(result).toMatchObject({ from: 6, to: 7 });
});

test('a run whose session was taken over stops, and writes nothing more', async () => {
  const clock = fixedClock();
  const store = openStore(':memory:', { now: clock.now });
  const stall = tool({
    inputSchema: z.object({}),
    execute: async () => {
      clock.advance(60_000);
      store.leases.acquire('main', { id: 'another owner' });
      return 'late';
    },
  });
  await using home = await scriptedDeck([{ toolCalls: [{ name: 'stall', input: {}, id: 'c1' }] }], {
    store,
    tools: { stall },
  });
  const main = await home.deck.session('main');
  await expect(main.run('Go')).rejects.toMatchObject({ code: 'TAPE_FENCED' });
  expect(ownLines(store.entries.read('main'))).toEqual(['user: Go', 'assistant: [stall c1]']);
});

test('a run whose session was taken over saves no more of its answer', async () => {
  const clock = fixedClock();
  const store = openStore(':memory:', { now: clock.now });
  await using deck = await openDeck({ store, model: slowModel(Array(60).fill('word '), 5) });
  const run = (await deck.session('main')).run('Go');
  const saved = () => store.live.read('main', { run: run.id }).flatMap(({ chunks }) => chunks).length;
  await expect.poll(saved).toBeGreaterThan(2);
  clock.advance(60_000);
  store.leases.acquire('main', { id: 'another owner' });
  const before = saved();
  await expect(run).rejects.toMatchObject({ code: 'TAPE_FENCED' });
  expect(saved()).toBe(before);
});

test('an aborted tool receives the signal, its call stays open until the session continues, and no later call runs', async () => {
  const started = Promise.withResolvers<void>();
  const wait = tool({
    inputSchema: z.object({}),
    execute: (_, { abortSignal }) =>
      new Promise<string>((_resolve, reject) => {
        abortSignal?.addEventListener('abort', () => reject(new Error('stopped waiting')));
        started.resolve();
      }),
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'wait', input: {}, id: 'c1' }, sum('c2')] }, { text: 'never said' }],
    { tools: { wait, add } },
  );
  const main = await home.deck.session('main');
  const run = main.run('Wait');
  await started.promise;
  await main.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted', steps: 1 });
  const entries = [...home.store.entries.read('main')];
  expect(entryLines(entries).slice(2)).toEqual(['assistant: [wait c1] [add c2]', 'event run/aborted']);
  expect(entries.at(-1)?.payload).toMatchObject({ reason: 'enough', unbegun: ['c2'] });
  expect((await eventsOf(run)).map(eventLine).at(-1)).toBe('session-cancelled enough');
  // They stay as the abort left them until the session continues.
  await main.run('Go on');
  expect(ownLines(home.store.entries.read('main')).slice(3, 6)).toEqual([
    'wait c1 → error-text Outcome unknown: the run was aborted.',
    'add c2 → error-text Not run: the run was aborted.',
    'user: Go on',
  ]);
});

test('a run may be aborted by the caller’s own signal, before its start too', async () => {
  await using home = await scriptedDeck([{ text: 'too late', delayMs: 10_000 }]);
  const main = await home.deck.session('main');
  const controller = new AbortController();
  const run = main.run('One', { signal: controller.signal });
  setTimeout(() => controller.abort(new Error('changed my mind')), 20);
  expect(await run).toMatchObject({ finish: 'aborted' });
  const at = performance.now();
  expect(await main.run('Two', { signal: controller.signal })).toMatchObject({ finish: 'aborted' });
  expect(performance.now() - at).toBeLessThan(5_000);
  expect(ownLines(home.store.entries.read('main'))).toEqual([
    'user: One',
    'event run/aborted',
    'user: Two',
    'event run/aborted',
  ]);
});

test('inbox items that arrive during a run are applied at the next settled point', async () => {
  const tools = {
    tell: tool({
      inputSchema: z.object({}),
      execute: async () => {
        const body = { type: 'append' as const, drafts: [user('By the way: in French.')] };
        home.store.inbox.post('main', { body, source: 'cli' });
        return 'posted';
      },
    }),
  };
  await using home = await scriptedDeck(
    [
      {
        toolCalls: [
          { name: 'tell', input: {}, id: 'c1' },
          { name: 'tell', input: {}, id: 'c2' },
        ],
      },
      { text: 'Bien.', when: { text: 'in French' } },
    ],
    { tools },
  );
  expect(await (await home.deck.session('main')).run('Say well')).toMatchObject({ text: 'Bien.' });
  const entries = [...home.store.entries.read('main')];
  expect(entryLines(entries).slice(3)).toEqual([
    'tell c1 → text posted',
    'tell c2 → text posted',
    'user: By the way: in French.',
    'user: By the way: in French.',
    'assistant: Bien.',
  ]);
  expect(entries[5]?.meta).toMatchObject({ source: 'cli', mode: 'queue' });
  expect(home.store.inbox.list('main')).toEqual([]);
});

test('every call includes the instructions and the tools', async () => {
  const seen: unknown[] = [];
  const spy = tool({
    inputSchema: z.object({}),
    execute: async (_, { messages }) => {
      seen.push(messages.map(({ role }) => role));
      return 'ok';
    },
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'spy', input: {}, id: 'c1' }] }, { text: 'Done.' }],
    { instructions: 'Be short.' },
  );
  const run = (await home.deck.session('main')).run('Go', { tools: { spy } });
  expect(await run).toMatchObject({ finish: 'stop' });
  expect(seen).toEqual([['user']]);
});

test('an answer without content is a recorded call, and the session continues', async () => {
  await using home = await scriptedDeck([{ usage: { input: 3, output: 0 } }, { text: 'Sorry.' }]);
  const main = await home.deck.session('main');
  expect(await main.run('Hi')).toMatchObject({ finish: 'stop', text: '', usage: { input: 3 } });
  expect(await main.run('Hello?')).toMatchObject({ text: 'Sorry.' });
  expect(ownLines(home.store.entries.read('main'))).toEqual([
    'user: Hi',
    'assistant:',
    'user: Hello?',
    'assistant: Sorry.',
  ]);
  const [, , empty] = home.store.entries.read('main');
  expect(isObject(empty?.payload) && empty.payload.content).toEqual([]);
});
