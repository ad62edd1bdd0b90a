import type { LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider';
import { noUsage } from '@tapedeck/runtime/internal';
import { user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { entryLines, eventLine, eventsOf } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const counts = (
  input: Partial<LanguageModelV4Usage['inputTokens']>,
  output: Partial<LanguageModelV4Usage['outputTokens']>,
) => ({
  inputTokens: {
    total: undefined,
    noCache: undefined,
    cacheRead: undefined,
    cacheWrite: undefined,
    ...input,
  },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined, ...output },
});

const text = (words: string): LanguageModelV4StreamPart[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: words },
  { type: 'text-end', id: 't' },
];

const finish = (
  unified: 'stop' | 'length' | 'tool-calls' = 'stop',
  usage: LanguageModelV4Usage = counts({}, {}),
): LanguageModelV4StreamPart => ({ type: 'finish', finishReason: { unified, raw: undefined }, usage });

/** A model that gives each of the answers once. */
function model(provider: string, ...answers: LanguageModelV4StreamPart[][]): MockLanguageModelV4 {
  let calls = 0;
  return new MockLanguageModelV4({
    provider,
    modelId: 'm-1',
    doStream: async () => {
      const parts = answers[calls] ?? [];
      calls += 1;
      return { stream: convertArrayToReadableStream([{ type: 'stream-start', warnings: [] }, ...parts]) };
    },
  });
}

test.each([
  {
    name: 'cached tokens are no input, and reasoning is no output',
    usage: counts({ total: 100, cacheRead: 60, cacheWrite: 10 }, { total: 50, reasoning: 20 }),
    normal: { input: 30, output: 30, reasoning: 20, cacheRead: 60, cacheWrite: 10 },
  },
  {
    name: 'what the provider itself counts as not cached is taken at its word',
    usage: counts({ total: 100, noCache: 40, cacheRead: 60 }, { total: 5 }),
    normal: { input: 40, output: 5, reasoning: 0, cacheRead: 60, cacheWrite: 0 },
  },
  { name: 'counts that the provider leaves out are zero', usage: counts({}, {}), normal: noUsage },
  {
    name: 'no count is ever below zero',
    usage: counts({ total: 10, cacheRead: 60 }, { total: 5, reasoning: 9 }),
    normal: { input: 0, output: 0, reasoning: 9, cacheRead: 60, cacheWrite: 0 },
  },
])('usage: $name', async ({ usage, normal }) => {
  using store = openStore();
  await using deck = await openDeck({
    store,
    model: model('acme', [...text('Hi'), finish('stop', usage)]),
  });
  const result = await (await deck.session('main')).run('Hi');
  expect(result.usage).toEqual(normal);
  expect([...store.entries.read('main')].at(-1)?.meta.usage).toEqual(normal);
});

test('usage: a run sums its steps, and a merge its child’s', async () => {
  using store = openStore();
  const call: LanguageModelV4StreamPart = {
    type: 'tool-call',
    toolCallId: 'c1',
    toolName: 'none',
    input: '{}',
  };
  await using deck = await openDeck({
    store,
    model: model(
      'acme',
      [call, finish('tool-calls', counts({ total: 10 }, { total: 1 }))],
      [...text('Hi'), finish('stop', counts({ total: 20, cacheRead: 8 }, { total: 2 }))],
    ),
  });
  const main = await deck.session('main');
  const [outcome] = await main.delegate({ task: 'Go' });
  const total = { input: 22, output: 3, reasoning: 0, cacheRead: 8, cacheWrite: 0 };
  expect(outcome?.usage).toEqual(total);
  const [, mark] = store.entries.read('main');
  expect(isObject(mark?.payload) && mark.payload.state).toMatchObject({ usage: total });
});

test('an answer that was cut at its limit is marked', async () => {
  using store = openStore();
  await using deck = await openDeck({ store, model: model('acme', [...text('And so'), finish('length')]) });
  expect(await (await deck.session('main')).run('Tell')).toMatchObject({ finish: 'length', text: 'And so' });
});

test('a stream that fails half-way keeps the partial answer', async () => {
  using store = openStore();
  const fails: LanguageModelV4StreamPart = { type: 'error', error: new Error('overloaded') };
  await using deck = await openDeck({ store, model: model('acme', [...text('I think that'), fails]) });
  const main = await deck.session('main');
  const run = main.run('Tell');
  expect((await eventsOf(run)).map(eventLine)).toEqual([
    'run-started',
    'text I think that',
    'session-completed error',
  ]);
  expect(await run).toMatchObject({ finish: 'error', error: { code: 'SESSION_MODEL_FAILED' } });
  const [, , partial, failed] = store.entries.read('main');
  expect(partial).toMatchObject({ kind: 'message', meta: { partial: true, provider: 'acme', step: 1 } });
  expect(entryLines(partial === undefined ? [] : [partial])).toEqual(['assistant: I think that']);
  expect(failed).toMatchObject({ name: 'run/error', payload: { message: 'overloaded' } });
});

test('a call that arrived before the stream failed is not run', async () => {
  using store = openStore();
  let runs = 0;
  const pay = tool({
    inputSchema: z.object({}),
    execute: async () => {
      runs += 1;
      return 'paid';
    },
  });
  const call: LanguageModelV4StreamPart = {
    type: 'tool-call',
    toolCallId: 'c1',
    toolName: 'pay',
    input: '{}',
  };
  const fails: LanguageModelV4StreamPart = { type: 'error', error: new Error('overloaded') };
  await using deck = await openDeck({ store, tools: { pay }, model: model('acme', [call, fails]) });
  const main = await deck.session('main');
  expect(await main.run('Pay')).toMatchObject({ finish: 'error' });
  expect(runs).toBe(0);
  expect(store.sessions.find('main')).toMatchObject({ head: 5, settled: 5 });
  expect(entryLines(store.entries.read('main')).slice(2)).toEqual([
    'assistant: [pay c1]',
    'pay c1 → error-text Not run: the answer with this call was cut off.',
    'event run/error',
  ]);
});

test('arguments that are not JSON are kept unchanged, and the tool is not run', async () => {
  using store = openStore();
  let runs = 0;
  const pay = tool({
    inputSchema: z.object({ sum: z.number() }),
    execute: async () => {
      runs += 1;
      return 'paid';
    },
  });
  const raw = '{"sum": 12,';
  const call: LanguageModelV4StreamPart = {
    type: 'tool-call',
    toolCallId: 'c1',
    toolName: 'pay',
    input: raw,
  };
  const acme = model('acme', [call, finish('tool-calls')], [...text('Sorry'), finish()]);
  await using deck = await openDeck({ store, tools: { pay }, model: acme });
  expect(await (await deck.session('main')).run('Pay')).toMatchObject({ finish: 'stop', text: 'Sorry' });
  expect(runs).toBe(0);
  const [, , asked, answered] = store.entries.read('main');
  expect(asked?.meta).toMatchObject({ raw_input: { c1: raw } });
  expect(answered?.payload).toMatchObject({ toolCallId: 'c1', output: { type: 'error-text' } });
  // No provider takes a text where a call's arguments belong.
  const again = acme.doStreamCalls[1]?.prompt.flatMap((m) => (m.role === 'assistant' ? m.content : []));
  expect(again).toMatchObject([{ type: 'tool-call', toolCallId: 'c1', input: {} }]);
});

const thinking: LanguageModelV4StreamPart[] = [
  { type: 'reasoning-start', id: 'r' },
  { type: 'reasoning-delta', id: 'r', delta: 'Let me see.' },
  { type: 'reasoning-end', id: 'r', providerMetadata: { anthropic: { signature: 'c2lnbmF0dXJl' } } },
];

test('reasoning returns to its own provider with its signature, and to no other', async () => {
  using store = openStore();
  const first = model('anthropic.messages', [...thinking, ...text('It is 3.'), finish()]);
  const same = model('anthropic.messages', [...text('Still 3.'), finish()]);
  const other = model('openai.responses', [...text('Yes, 3.'), finish()]);
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  const run = main.run('1 + 2?', { model: first });
  expect((await eventsOf(run)).map(eventLine)).toContain('reasoning Let me see.');
  const [, , answer] = store.entries.read('main');
  expect(answer?.payload).toMatchObject({
    content: [
      {
        type: 'reasoning',
        text: 'Let me see.',
        providerOptions: { anthropic: { signature: 'c2lnbmF0dXJl' } },
      },
      { type: 'text', text: 'It is 3.' },
    ],
  });
  await main.run('Sure?', { model: same });
  await main.run('Really?', { model: other });
  const sent = (to: MockLanguageModelV4) =>
    to.doStreamCalls[0]?.prompt.flatMap((m) => (m.role === 'assistant' ? m.content : []));
  expect(sent(same)).toMatchObject([
    { type: 'reasoning', text: 'Let me see.', providerOptions: { anthropic: { signature: 'c2lnbmF0dXJl' } } },
    { type: 'text', text: 'It is 3.' },
  ]);
  expect(sent(other)).toMatchObject([
    { type: 'text', text: 'It is 3.' },
    { type: 'text', text: 'Still 3.' },
  ]);
  expect(JSON.stringify(other.doStreamCalls[0]?.prompt)).not.toContain('Let me see');
});

test('a file of a user message reaches the model byte for byte', async () => {
  using store = openStore();
  const acme = model('acme', [...text('A picture.'), finish()]);
  await using deck = await openDeck({ store, model: acme });
  const data = Uint8Array.from({ length: 5000 }, (_, i) => i % 251);
  const main = await deck.session('main');
  await main.run([
    { type: 'text', text: 'What is this?' },
    { type: 'file', mediaType: 'image/png', data },
  ]);
  const [file] = (acme.doStreamCalls[0]?.prompt ?? [])
    .flatMap((m) => (m.role === 'user' ? m.content : []))
    .filter((part) => part.type === 'file');
  expect(file?.mediaType).toBe('image/png');
  expect(file?.data.type === 'data' && Buffer.compare(Buffer.from(file.data.data), data)).toBe(0);
});

test('half a surrogate pair stays on the tape, and reaches no model', async () => {
  using store = openStore();
  const acme = model('acme', [...text('Odd.'), finish()]);
  await using deck = await openDeck({ store, model: acme });
  store.sessions.open('main');
  store.entries.append('main', [user('half \ud83d of it')]);
  await (await deck.session('main')).run();
  const [, said] = store.entries.read('main');
  expect(entryLines(said === undefined ? [] : [said])).toEqual(['user: half \ud83d of it']);
  expect(acme.doStreamCalls[0]?.prompt[0]).toMatchObject({ content: [{ text: 'half \ufffd of it' }] });
});

test('the same entries are sent as the same bytes', async () => {
  using store = openStore();
  const [a, b] = [model('acme', [finish()]), model('acme', [finish()])];
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  store.entries.append('main', [user('One')]);
  const child = await main.fork();
  await child.run(undefined, { model: a });
  await main.run(undefined, { model: b });
  expect(JSON.stringify(a.doStreamCalls[0]?.prompt)).toBe(JSON.stringify(b.doStreamCalls[0]?.prompt));
});

const said = (text: string, unified: 'stop' | 'content-filter'): LanguageModelV4StreamPart[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: text },
  { type: 'text-end', id: 't' },
  { type: 'finish', finishReason: { unified, raw: undefined }, usage: counts({}, {}) },
];

/** A model whose result in JSON a content filter cuts off. */
const halfJson = model('acme', said('Cooked.', 'stop'), said('{"salt":', 'content-filter'));

/** A model whose answers a content filter cuts off after their text. */
const filtered = (text: string) => model('acme', said(text, 'content-filter'));

test('an answer that a content filter cut off is no success', async () => {
  using store = openStore();
  await using deck = await openDeck({ store, model: filtered('The recipe') });
  const main = await deck.session('main');
  expect(await main.run('Go')).toMatchObject({ finish: 'filtered', text: 'The recipe' });
  const events = (await Array.fromAsync(main.replay())).flatMap((chunk) =>
    chunk.type === 'data-event' ? [chunk.data] : [],
  );
  expect(events).toContainEqual({ type: 'session-completed', finish: 'filtered', haltedAtLimit: false });
});

test('a child whose answer a content filter cut off is filtered, and its parent reads that', async () => {
  using store = openStore();
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  const [outcome] = await main.delegate({ task: 'Cook', name: 'kid' }, { model: filtered('The recipe') });
  const text = 'The recipe\n\nFiltered: a content filter cut off the answer';
  expect(outcome).toMatchObject({ session: 'kid', status: 'filtered', text });
  expect(store.sessions.find('kid')).toMatchObject({ task: 'filtered', delivery: 'merged' });
  const [mark, message] = store.entries.read('main', { last: 2 });
  expect(mark?.payload).toMatchObject({ state: { status: 'filtered', partial: true } });
  expect(JSON.stringify(message?.payload)).toContain('status=\\"filtered\\" partial=\\"true\\"');
  const form = { responseFormat: Promise.resolve({ type: 'json' as const, schema: { type: 'object' } }) };
  const asked = await main.delegate({ task: 'Cook', name: 'cook' }, { model: halfJson, output: form });
  expect(asked).toMatchObject([{ status: 'filtered' }]);
  // A process that died before it recorded the task reads it from the answer.
  store.sessions.update('kid', { task: 'running' });
  await deck.recover({ abort: true });
  expect(store.sessions.find('kid')?.task).toBe('filtered');
});
