import { assistant, toolCall, toolResult, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { type ChatAnswer, type ChatRequest, isAfterTools, startProvider } from '../support/provider.ts';
import { entryLines, eventLine, eventsOf } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const add = tool({
  description: 'Add two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
});

/** A session `main` whose model is a server that answers so. */
async function served(answer: (request: ChatRequest, index: number) => ChatAnswer) {
  const provider = await startProvider(answer);
  const store = openStore();
  const deck = await openDeck({
    store,
    tools: { add },
    model: 'openai-compatible/test-model',
    env: provider.env,
  });
  const main = await deck.session('main');
  return {
    provider,
    store,
    main,
    lines: () => entryLines(store.entries.read('main')).slice(1),
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      store.close();
      await provider[Symbol.asyncDispose]();
    },
  };
}

test('texts, calls and usage arrive as the server streams them', async () => {
  await using s = await served((request) =>
    isAfterTools(request)
      ? { text: ['It ', 'is 3.'], usage: [40, 4] }
      : {
          text: 'Let me add.',
          calls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }],
          usage: [20, 9],
        },
  );
  const run = s.main.run('1 + 2?', { instructions: 'Be short.' });
  const events = (await eventsOf(run)).map(eventLine);
  expect(events).toEqual([
    'run-started',
    'text Let me add.',
    'tool-detected add',
    'tool-batch-started',
    'tool-started add',
    'tool-completed add well',
    'tool-batch-completed',
    'iteration-completed 1 and on',
    'text It ',
    'text is 3.',
    'iteration-completed 2',
    'session-completed stop',
  ]);
  expect(await run).toMatchObject({ text: 'It is 3.', usage: { input: 60, output: 13 }, steps: 2 });
  expect(s.lines()).toEqual([
    'user: 1 + 2?',
    'assistant: Let me add. [add c1]',
    'add c1 → json 3',
    'assistant: It is 3.',
  ]);
  const [first, second] = s.provider.requests;
  expect(first).toMatchObject({
    model: 'test-model',
    messages: [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: '1 + 2?' },
    ],
    tools: [{ type: 'function', function: { name: 'add', description: 'Add two numbers' } }],
    stream_options: { include_usage: true },
  });
  expect(second?.messages.slice(2)).toMatchObject([
    { role: 'assistant', content: 'Let me add.', tool_calls: [{ id: 'c1' }] },
    { role: 'tool', tool_call_id: 'c1', content: '3' },
  ]);
});

test.each([500, 503, 429])('a request that fails once with %i is retried', async (status) => {
  await using s = await served((_, index) => (index === 0 ? { status, message: 'busy' } : { text: 'Hi.' }));
  expect(await s.main.run('Hi')).toMatchObject({ finish: 'stop', text: 'Hi.' });
  expect(s.provider.requests).toHaveLength(2);
  expect(s.lines()).toEqual(['user: Hi', 'event run/retrying', 'assistant: Hi.']);
});

test.each([
  { status: 500, tries: 3 },
  { status: 429, tries: 3 },
  { status: 401, tries: 1 },
  { status: 404, tries: 1 },
])(
  'a server that answers $status ends the run with an error, after $tries tries',
  async ({ status, tries }) => {
    await using s = await served(() => ({ status, message: 'not today' }));
    const result = await s.main.run('Hi');
    expect(result).toMatchObject({ finish: 'error', error: { code: 'SESSION_MODEL_FAILED' } });
    expect(result.error?.message).toContain('not today');
    expect(s.provider.requests).toHaveLength(tries);
    const retries = Array.from({ length: tries - 1 }, () => 'event run/retrying');
    expect(s.lines()).toEqual(['user: Hi', ...retries, 'event run/error']);
  },
);

test('a stream that breaks off keeps the partial answer, and is an error', async () => {
  await using s = await served((_, index) =>
    index === 0 ? { text: ['I think ', 'that '], cut: true } : { text: 'As I said.' },
  );
  expect(await s.main.run('Well?')).toMatchObject({ finish: 'error' });
  const partial = [...s.store.entries.read('main')][2];
  expect(partial).toMatchObject({ kind: 'message', meta: { partial: true } });
  expect(s.lines()).toEqual(['user: Well?', 'assistant: I think that', 'event run/error']);
  // The next request contains the partial answer, and is valid.
  expect(await s.main.run('Go on.')).toMatchObject({ text: 'As I said.' });
  expect(s.provider.requests.at(-1)?.messages).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: 'I think that ' },
    { role: 'user', content: 'Go on.' },
  ]);
});

test('aborting closes the stream, and keeps the partial answer', async () => {
  await using s = await served(() => ({ text: ['I ', 'wonder '], hang: true }));
  const run = s.main.run('Well?');
  for await (const event of run)
    if (event.type === 'content-chunk' && event.text === 'wonder ') run.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(s.lines()).toEqual(['user: Well?', 'assistant: I wonder', 'event run/aborted']);
});

test('aborting a silent server ends at once', async () => {
  await using s = await served(() => ({ hang: true }));
  const run = s.main.run('Well?');
  setTimeout(() => run.abort('enough'), 100);
  expect(await run).toMatchObject({ finish: 'aborted', text: '' });
  expect(s.lines()).toEqual(['user: Well?', 'event run/aborted']);
});

test('an unreachable server is retried, and aborting ends the wait', async () => {
  using store = openStore();
  const env = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_API_KEY: 'x' };
  const limits = { retryDelayMs: 60_000 };
  await using deck = await openDeck({ store, model: 'openai-compatible/m', env, limits });
  const run = (await deck.session('main')).run('Hi');
  const at = performance.now();
  for await (const { type } of run) if (type === 'retrying') run.abort('enough');
  expect(await run).toMatchObject({ finish: 'aborted' });
  expect(entryLines(store.entries.read('main'))).toEqual([
    'anchor session/start',
    'user: Hi',
    'event run/retrying',
    'event run/aborted',
  ]);
  expect(performance.now() - at).toBeLessThan(30_000);
});

test('arguments that are not JSON get an error result, and the next request is valid', async () => {
  await using s = await served((request) =>
    isAfterTools(request)
      ? { text: 'Sorry.' }
      : { calls: [{ id: 'c1', name: 'add', arguments: '{"a": 1, "b":' }] },
  );
  expect(await s.main.run('1 + 2?')).toMatchObject({ finish: 'stop', text: 'Sorry.' });
  expect([...s.store.entries.read('main')][2]?.meta).toMatchObject({ raw_input: { c1: '{"a": 1, "b":' } });
  expect(s.provider.refusals).toEqual([]);
});

test('a server that repeats its call ids in every answer receives distinct ids', async () => {
  await using s = await served((_, index) =>
    index < 3 ? { calls: [{ id: 'call_0', name: 'add', arguments: { a: index, b: 1 } }] } : { text: 'Done.' },
  );
  expect(await s.main.run('Count')).toMatchObject({ finish: 'stop', steps: 4 });
  expect(s.provider.refusals).toEqual([]);
  const results = [...s.store.entries.read('main', { kind: 'tool-result' })].map(({ payload }) => payload);
  expect(results.map((p) => isObject(p) && isObject(p.output) && p.output.value)).toEqual([1, 2, 3]);
});

test('an answer without content is recorded, and the next request is valid', async () => {
  await using s = await served((_, index) => (index === 0 ? {} : { text: 'Yes?' }));
  expect(await s.main.run('Hi')).toMatchObject({ finish: 'stop', text: '' });
  expect(await s.main.run('Hello?')).toMatchObject({ text: 'Yes?' });
  expect(s.provider.refusals).toEqual([]);
});

test('the request is valid for every tape', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  const call = { toolCallId: 'c1', toolName: 'add' };
  s.store.entries.append('main', [
    user(''),
    user('One'),
    assistant([
      { type: 'text', text: '' },
      toolCall('c1', 'add', { a: 1, b: 1 }),
      toolCall('c2', 'gone', {}),
    ]),
    toolResult({ toolCallId: 'c2', toolName: 'gone' }, null),
    toolResult(call, { type: 'error-text', value: 'no' }),
    assistant([{ type: 'reasoning', text: 'hm' }]),
    assistant([
      { type: 'tool-call', toolCallId: 'p1', toolName: 'search', input: {}, providerExecuted: true },
    ]),
  ]);
  expect(await s.main.run('Two')).toMatchObject({ finish: 'stop', text: 'Fine.' });
  expect(s.provider.refusals).toEqual([]);
});
