import { createAnthropic } from '@ai-sdk/anthropic';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import {
  type Divergence,
  delegateTool,
  recorded,
  recordedTools,
  type Session,
  SessionError,
  toPrompt,
} from '@tapedeck/runtime';
import {
  generateText,
  isStepCount,
  type LanguageModel,
  type ModelMessage,
  streamText,
  type ToolSet,
  tool,
} from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { audited } from '../support/audited.ts';
import { openDeck } from '../support/deck.ts';
import { anthropic } from '../support/provider/anthropic.ts';
import { apiKey, type ChatAnswer } from '../support/provider/protocol.ts';
import { isAfterTools, lastUserText, startProvider, startWholeProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';
import { tokenShapes } from '../support/token-shapes.ts';

const none = z.object({});
const loop = { stopWhen: isStepCount(5), maxRetries: 0 };

/** A session `main` whose model calls these tools at once, and then says that it is done. */
async function calling(...names: readonly string[]) {
  const provider = await startWholeProvider(
    (request): ChatAnswer =>
      isAfterTools(request)
        ? { text: 'Done.' }
        : { calls: names.map((name, i) => ({ id: `c${i + 1}`, name, arguments: {} })) },
  );
  const store = openStore();
  const deck = await openDeck({ store, env: provider.env });
  const main = await deck.session('main');
  return {
    provider,
    store,
    deck,
    main,
    generate: async (tools: ToolSet, session: Session = main) =>
      await generateText({
        model: await recorded(session, 'openai-compatible/test-model'),
        tools: recordedTools(session, tools),
        prompt: 'Do it.',
        ...loop,
      }),
    lines: () => entryLines(store.entries.read('main')).slice(2),
    diverged: () => [...store.entries.read('main')].some(({ name }) => name === 'history/diverged'),
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      store.close();
      await provider[Symbol.asyncDispose]();
    },
  };
}

test('calls that run at the same time share the session, and each result is recorded when it is there', async () => {
  await using s = await calling('slow', 'quick');
  const order = Promise.withResolvers<string>();
  const slow = tool({ inputSchema: none, execute: async () => await order.promise });
  const quick = tool({
    inputSchema: none,
    execute: async () => {
      setTimeout(order.resolve, 20, 'slow result');
      return 'quick result';
    },
  });
  expect((await s.generate({ slow, quick })).text).toBe('Done.');
  expect(s.lines()).toEqual([
    'assistant: [slow c1] [quick c2]',
    'event run/waiting',
    'event run/begun',
    'event run/begun',
    'quick c2 → text quick result',
    'slow c1 → text slow result',
    'assistant: Done.',
  ]);
  expect(s.diverged()).toBe(false);
});

test('results are those that the SDK sends: of errors, of toModelOutput, of generators, of nothing, and large ones', async () => {
  await using s = await calling('fails', 'formats', 'yields', 'nothing', 'large', 'dates');
  const tools = {
    fails: tool({
      inputSchema: none,
      execute: async (): Promise<string> => Promise.reject(new Error('no luck')),
    }),
    formats: tool({
      inputSchema: none,
      execute: async () => 4,
      toModelOutput: ({ output }) => ({
        type: 'content',
        value: [{ type: 'text', text: `four is ${output}` }],
      }),
    }),
    yields: tool({
      inputSchema: none,
      execute: async function* () {
        yield 'half';
        yield 'whole';
      },
    }),
    nothing: tool({ inputSchema: none, execute: async () => undefined }),
    large: tool({ inputSchema: none, execute: async () => 'x'.repeat(400_000) }),
    dates: tool({ inputSchema: none, execute: async () => ({ at: new Date(0), left: undefined }) }),
  };
  expect((await s.generate(tools)).text).toBe('Done.');
  expect(s.diverged()).toBe(false);
  const results = s.lines().filter((line) => line.includes('→'));
  expect(results.map((line) => line.slice(0, 60)).toSorted()).toEqual([
    'dates c6 → json {"at":"1970-01-01T00:00:00.000Z"}',
    'fails c1 → error-text Error: no luck',
    expect.stringContaining('formats c2 → content'),
    expect.stringContaining('large c5 → text'),
    'nothing c4 → json null',
    'yields c3 → text whole',
  ]);
  // The history of the second call had the whole text, and that of a third one has its preview.
  const { messages } = await s.main.view({ target: { provider: 'openai-compatible.chat' } });
  const read = (await toPrompt(messages, (hash) => s.store.entries.blob(hash))).slice(0, -1);
  const model = await recorded(s.main, 'openai-compatible/test-model');
  await generateText({ model, messages: [...read, { role: 'user', content: 'Again.' }], tools });
  expect(s.diverged()).toBe(false);
});

test('the values that a tool yields reach the application as they come', async () => {
  await using s = await calling('counts');
  const counts = tool({
    inputSchema: none,
    execute: async function* () {
      yield 1;
      yield 2;
    },
  });
  const { stream } = streamText({
    model: await recorded(s.main, 'openai-compatible/test-model'),
    tools: recordedTools(s.main, { counts }),
    prompt: 'Do it.',
    ...loop,
  });
  const outputs: unknown[] = [];
  for await (const part of stream)
    if (part.type === 'tool-result') outputs.push([part.preliminary ?? false, part.output]);
  expect(outputs).toEqual([
    [true, 1],
    [true, 2],
    [false, 2],
  ]);
});

test('an abort in a tool leaves the outcome unknown, and frees the session', async () => {
  await using s = await calling('waits');
  const abort = new AbortController();
  const waits = tool({
    inputSchema: none,
    execute: async (_, { abortSignal }): Promise<string> => {
      abort.abort(new Error('enough'));
      abortSignal?.throwIfAborted();
      return 'never';
    },
  });
  const model = await recorded(s.main, 'openai-compatible/test-model');
  const tools = recordedTools(s.main, { waits });
  await generateText({ model, tools, prompt: 'Do it.', abortSignal: abort.signal, ...loop }).catch(() => {});
  expect(s.lines().slice(2)).toEqual(['event run/begun', 'event run/aborted']);
  await generateText({ model, prompt: 'Something else.', maxRetries: 0 });
  expect(s.lines()).toContain('waits c1 → error-text Outcome unknown: the run was aborted.');
});

test('a call that the tape does not have, or has begun, is refused, and its tool does not run', async () => {
  await using s = await calling('acts');
  let ran = 0;
  const { acts } = recordedTools(s.main, {
    acts: tool({ inputSchema: none, execute: async () => (ran += 1) }),
  });
  const options = { toolCallId: 'c1', messages: [], context: {} };
  await expect(acts.execute?.({}, options)).rejects.toMatchObject({ code: 'SESSION_NO_CALL' });
  const model = await recorded(s.main, 'openai-compatible/test-model');
  const { acts: shown } = { acts: { inputSchema: none } };
  await generateText({ model, tools: { acts: shown }, prompt: 'Do it.', maxRetries: 0 });
  await acts.execute?.({}, options);
  await expect(acts.execute?.({}, options)).rejects.toMatchObject({ code: 'SESSION_NO_CALL' });
  expect(ran).toBe(1);
});

test('a tool that the session may not call is refused, and the model reads why', async () => {
  await using s = await calling('acts');
  const limited = await s.deck.session('limited', { tools: ['other'] });
  let ran = 0;
  const acts = tool({ inputSchema: none, execute: async () => (ran += 1) });
  expect((await s.generate({ acts }, limited)).text).toBe('Done.');
  expect(ran).toBe(0);
  expect(entryLines(s.store.entries.read('limited'))).toContain(
    "acts c1 → error-text Error: Tool 'acts' may not be used in this session.",
  );
});

test('a model of an application delegates, and the result of the child is that of the call', async () => {
  const provider = await startWholeProvider((request): ChatAnswer => {
    if (lastUserText(request).includes('Check the tests.')) return { text: 'They pass.' };
    return isAfterTools(request)
      ? { text: 'Done.' }
      : { calls: [{ id: 'c1', name: 'delegate', arguments: { tasks: [{ task: 'Check the tests.' }] } }] };
  });
  await using _ = provider;
  using store = openStore();
  const model = 'openai-compatible/test-model';
  await using deck = await openDeck({ store, env: provider.env, model });
  const main = await deck.session('main');
  const { text } = await generateText({
    model: await recorded(main, model),
    tools: recordedTools(main, { delegate: delegateTool() }),
    prompt: 'Do it.',
    ...loop,
  });
  expect(text).toBe('Done.');
  const lines = entryLines(store.entries.read('main'));
  expect(lines.find((line) => line.startsWith('delegate c1'))).toContain('They pass.');
  expect(lines).not.toContain('event history/diverged');
  expect((await main.view()).messages.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
  ]);
  await deck.idle();
  expect((await audited(store)).findings).toEqual([]);
});

test('reasoning goes back to its provider with its signature, also from the tape', async () => {
  const provider = await startProvider(
    (_, index) =>
      index % 2 === 0
        ? { reasoning: 'They want it done.', calls: [{ id: 'toolu_1', name: 'acts', arguments: {} }] }
        : { reasoning: 'It is done.', text: 'Done.' },
    anthropic,
  );
  await using _ = provider;
  using store = openStore();
  await using deck = await openDeck({ store });
  const main = await deck.session('main');
  const alone = createAnthropic({ apiKey, baseURL: provider.url })('claude-sonnet-4-5');
  const acts = tool({ inputSchema: none, execute: async () => 'acted' });
  const found: Divergence[] = [];
  const model = await recorded(main, alone, { onDivergence: (one) => found.push(one) });
  const ask = async (given: LanguageModel, tools: ToolSet, messages: ModelMessage[]) => {
    const result = streamText({ model: given, tools, messages, ...loop });
    await result.consumeStream();
    return await result.responseMessages;
  };
  const first: ModelMessage = { role: 'user', content: 'Do it.' };
  const said = await ask(model, recordedTools(main, { acts }), [first]);
  const { messages } = await main.view({ target: { provider: 'anthropic.messages' } });
  const read = (await toPrompt(messages, (hash) => store.entries.blob(hash))).slice(0, -1);
  const next: ModelMessage = { role: 'user', content: 'Again.' };
  await ask(model, { acts: { inputSchema: none } }, [...read, next]);
  const fromTape = provider.requests.at(-1);
  await ask(alone, { acts: { inputSchema: none } }, [first, ...said, next]);
  expect(JSON.stringify(provider.requests.at(-1))).toBe(JSON.stringify(fromTape));
  expect(JSON.stringify(fromTape)).toContain('"signature"');
  expect({ found, refusals: provider.refusals }).toEqual({ found: [], refusals: [] });
});

const tokens = { inputTokens: 3, outputTokens: 2, totalTokens: 5 };
const counts = {
  inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 2, text: 2, reasoning: undefined },
};

test.each(['v2', 'v3'] as const)(
  'a model of the specification %s is recorded, whole and streamed',
  async (version) => {
    const finish = {
      finishReason: version === 'v2' ? 'stop' : { unified: 'stop', raw: undefined },
      usage: version === 'v2' ? tokens : counts,
    };
    const old = {
      specificationVersion: version,
      provider: 'old',
      modelId: 'old-1',
      supportedUrls: {},
      doGenerate: async () => ({ content: [{ type: 'text', text: 'Whole.' }], warnings: [], ...finish }),
      doStream: async () => ({
        stream: ReadableStream.from([
          { type: 'stream-start', warnings: [] },
          { type: 'text-start', id: 't' },
          { type: 'text-delta', id: 't', delta: 'Streamed.' },
          { type: 'text-end', id: 't' },
          { type: 'finish', ...finish },
        ]),
      }),
    } as unknown as LanguageModelV4;
    using store = openStore();
    await using deck = await openDeck({ store });
    const main = await deck.session('main');
    const model = await recorded(main, old);
    expect((await generateText({ model, prompt: 'One' })).text).toBe('Whole.');
    const { text } = streamText({
      model,
      messages: [
        { role: 'user', content: 'One' },
        { role: 'assistant', content: 'Whole.' },
        { role: 'user', content: 'Two' },
      ],
    });
    expect(await text).toBe('Streamed.');
    expect(entryLines(store.entries.read('main')).slice(1)).toEqual([
      ...['user: One', 'assistant: Whole.', 'user: Two', 'assistant: Streamed.'],
    ]);
    expect(await main.usage()).toMatchObject({
      steps: 2,
      usage: { input: 6, output: 4 },
      models: [{ model: 'old-1' }],
    });
  },
);

test('files are stored once, secrets not at all, and both stay the same history', async () => {
  const secret = 'sk-0123456789abcdef';
  const provider = await startWholeProvider((_, index) => ({
    text: index === 0 ? `Your key is ${secret}.` : 'Yes.',
  }));
  await using _ = provider;
  using store = openStore();
  await using deck = await openDeck({ store, env: provider.env, secrets: { SEARCH_KEY: secret } });
  const main = await deck.session('main');
  const found: Divergence[] = [];
  const model = await recorded(main, 'openai-compatible/test-model', {
    onDivergence: (one) => found.push(one),
  });
  const image = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 1, 2, 3]);
  const messages: ModelMessage[] = [
    {
      role: 'user',
      content: [
        { type: 'text', text: `My key is ${secret}.` },
        { type: 'file', data: image, mediaType: 'image/png' },
      ],
    },
  ];
  for (const text of ['Is it?', 'Sure?']) {
    const result = await generateText({ model, messages });
    expect(result.text).not.toContain(secret);
    messages.push(...result.responseMessages, { role: 'user', content: text });
  }
  await generateText({ model, messages });
  expect(found).toEqual([]);
  const all = [...store.entries.read('main')];
  expect(JSON.stringify(all)).not.toContain(secret);
  expect(all.filter(({ payload }) => JSON.stringify(payload).includes('image/png'))).toHaveLength(1);
  expect(JSON.stringify(provider.requests.at(-1))).toContain(secret);
});

test('a result with the form of a secret is not recorded, and stays the same history', async () => {
  const [, token = ''] = tokenShapes.find(([name]) => name === 'github') ?? [];
  await using s = await calling('read');
  const read = tool({ inputSchema: none, execute: () => ({ token }) });
  expect((await s.generate({ read })).text).toBe('Done.');
  expect(s.diverged()).toBe(false);
  expect(s.lines().some((line) => line.includes('[secret github]'))).toBe(true);
  expect(JSON.stringify([...s.store.entries.read('main')])).not.toContain(token);
});

test('bad input is refused with a typed error, before a model is called', async () => {
  await using s = await calling('acts');
  await expect(recorded({} as Session, 'openai-compatible/test-model')).rejects.toBeInstanceOf(SessionError);
  expect(() => recordedTools({} as Session, {})).toThrow(SessionError);
  await expect(recorded(s.main, 'nonsense')).rejects.toMatchObject({ code: 'SESSION_NO_MODEL' });
  await expect(recorded(s.main, 'anthropic/x')).rejects.toMatchObject({ code: 'SESSION_NO_KEY' });
  const wrong = { onDiverged: () => {} };
  await expect(recorded(s.main, 'openai-compatible/x', wrong as never)).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  const model = await recorded(s.main, 'openai-compatible/test-model');
  const huge = generateText({ model, prompt: 'x'.repeat(17 * 1024 * 1024), maxRetries: 0 });
  await expect(huge).rejects.toMatchObject({ code: 'TAPE_BAD_ENTRY' });
  expect(await s.main.status()).toMatchObject({ state: 'idle' });
  s.store.sessions.update('main', { lifecycle: 'archived' });
  const ask = async () => await generateText({ model, prompt: 'Hi', maxRetries: 0 });
  await expect(ask()).rejects.toMatchObject({ code: 'TAPE_ARCHIVED' });
  await s.deck[Symbol.asyncDispose]();
  await expect(ask()).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
  expect(s.provider.requests).toEqual([]);
  expect(s.lines()).toEqual([]);
});

test('closing the deck aborts a call, and waits until that is recorded', async () => {
  const provider = await startWholeProvider(() => ({ text: ['I think '], hang: true }));
  await using _ = provider;
  using store = openStore();
  const deck = await openDeck({ store, env: provider.env });
  const main = await deck.session('main');
  const model = await recorded(main, 'openai-compatible/test-model');
  const { textStream } = streamText({ model, prompt: 'Hi', onError: () => {} });
  const reading = Array.fromAsync(textStream);
  reading.catch(() => {});
  await expect.poll(() => JSON.stringify(store.live.read('main'))).toContain('I think');
  await deck[Symbol.asyncDispose]();
  expect(entryLines(store.entries.read('main')).slice(1)).toEqual([
    ...['user: Hi', 'assistant: I think', 'event run/aborted'],
  ]);
});
