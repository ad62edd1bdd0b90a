import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { type Divergence, recorded, recordedTools, type Session, toPrompt } from '@tapedeck/runtime';
import type { Entry } from '@tapedeck/tape';
import { generateText, isStepCount, type ModelMessage, streamText, ToolLoopAgent, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { audited } from '../support/audited.ts';
import { openDeck } from '../support/deck.ts';
import { apiKey } from '../support/provider/protocol.ts';
import { type ChatAnswer, type ChatRequest, isAfterTools, startWholeProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const add = tool({
  description: 'Add two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number(), unit: z.string().default('apples') }),
  execute: async ({ a, b }) => a + b,
});

const u = (content: string): ModelMessage => ({ role: 'user', content });
const a = (content: string): ModelMessage => ({ role: 'assistant', content });

type Answer = (request: ChatRequest, index: number) => ChatAnswer | Promise<ChatAnswer>;

/** A session `main` for an application whose provider answers so. */
async function served(answer: Answer, home = openStore()) {
  const provider = await startWholeProvider(answer);
  const deck = await openDeck({ store: home, env: provider.env });
  const main = await deck.session('main');
  const alone = createOpenAICompatible({
    name: 'openai-compatible',
    baseURL: provider.url,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  })('test-model');
  return {
    provider,
    deck,
    store: home,
    main,
    /** The model without a tape. */
    alone,
    model: async (session: Session = main) => await recorded(session, 'openai-compatible/test-model'),
    lines: (session = 'main') => entryLines(home.entries.read(session)).slice(1),
    entries: (): Entry[] => [...home.entries.read('main')].slice(1),
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      home.close();
      await provider[Symbol.asyncDispose]();
    },
  };
}

const adding: Answer = (request) =>
  isAfterTools(request)
    ? { text: ['It ', 'is 3.'], usage: [40, 4] }
    : {
        reasoning: 'Numbers.',
        text: 'Let me add.',
        calls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }],
        usage: [20, 9],
      };

const loop = { stopWhen: isStepCount(5), maxRetries: 0 };
const addedLines = [
  'user: 1 + 2?',
  'assistant: Numbers. Let me add. [add c1]',
  'event run/waiting',
  'event run/begun',
  'add c1 → json 3',
  'assistant: It is 3.',
];

/** The bodies of requests, without what differs between streams and whole answers. */
function bodies(requests: readonly ChatRequest[]) {
  return requests.map(({ stream, stream_options, ...body }) => body);
}

const prompt = '1 + 2?';
const instructions = 'Be short.';
const ways = {
  streamText: async (model: Awaited<ReturnType<typeof recorded>>, tools: { add: typeof add }) =>
    await streamText({ model, tools, instructions, prompt, ...loop }).text,
  generateText: async (model: Awaited<ReturnType<typeof recorded>>, tools: { add: typeof add }) =>
    (await generateText({ model, tools, instructions, prompt, ...loop })).text,
  'ToolLoopAgent.stream': async (model: Awaited<ReturnType<typeof recorded>>, tools: { add: typeof add }) =>
    await (await new ToolLoopAgent({ model, tools, instructions, ...loop }).stream({ prompt })).text,
  'ToolLoopAgent.generate': async (model: Awaited<ReturnType<typeof recorded>>, tools: { add: typeof add }) =>
    (await new ToolLoopAgent({ model, tools, instructions, ...loop }).generate({ prompt })).text,
};

test.each(Object.entries(ways))(
  '%s: the requests are those of the SDK alone, and all is on the tape',
  async (_, act) => {
    await using s = await served(adding);
    expect(await act(s.alone, { add })).toBe('It is 3.');
    const alone = bodies(s.provider.requests);
    expect(alone).toHaveLength(2);
    expect(await act(await s.model(), recordedTools(s.main, { add }))).toBe('It is 3.');
    expect(bodies(s.provider.requests.slice(2))).toEqual(alone);
    expect(s.lines()).toEqual(addedLines);
    const [question, answer, , , , last] = s.entries();
    expect(question?.meta).toMatchObject({
      source: 'user',
      model: 'openai-compatible/test-model',
      place: {},
    });
    expect(answer?.meta).toMatchObject({
      step: 1,
      provider: expect.stringContaining('openai-compatible'),
      model: 'test-model',
      response: 'chatcmpl-1',
      finish: 'tool-calls',
      usage: { input: 20, output: 9 },
      instructions_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      tools_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      tools: [{ name: 'add', schema: expect.objectContaining({ type: 'object' }) }],
      view: { head: 2 },
    });
    expect(last?.meta).toMatchObject({ finish: 'stop', usage: { input: 40, output: 4 } });
    expect(last?.meta).not.toHaveProperty('tools');
    expect(await s.main.usage()).toMatchObject({ steps: 2, usage: { input: 60, output: 13 } });
    expect(await s.main.status()).toMatchObject({ state: 'idle' });
    expect([...s.store.verify('main')]).toEqual([]);
  },
);

test('without recorded tools, a call is on the tape before its tool runs, and its result with the next call', async () => {
  await using s = await served(adding);
  const seen: string[][] = [];
  const peeking = tool({
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    execute: async ({ a, b }) => {
      seen.push(s.lines());
      return a + b;
    },
  });
  const { text } = streamText({ model: await s.model(), tools: { add: peeking }, prompt, ...loop });
  expect(await text).toBe('It is 3.');
  expect(seen).toEqual([['user: 1 + 2?', 'assistant: Numbers. Let me add. [add c1]', 'event run/waiting']]);
  expect(s.lines()).toEqual([
    'user: 1 + 2?',
    'assistant: Numbers. Let me add. [add c1]',
    'event run/waiting',
    'add c1 → json 3',
    'assistant: It is 3.',
  ]);
});

test('each piece of an answer is saved before the application has it', async () => {
  await using s = await served(() => ({ text: ['one ', 'two ', 'three'], pauseMs: 40 }));
  const { textStream } = streamText({ model: await s.model(), prompt: 'Count.' });
  let read = '';
  for await (const piece of textStream) {
    read += piece;
    const saved = s.store.live.read('main').flatMap(({ chunks }) => chunks.map(({ chunk }) => chunk));
    const text = saved.map((chunk) => (chunk as { delta?: string }).delta ?? '').join('');
    expect(text.startsWith(read)).toBe(true);
    if (read.endsWith('three')) break;
  }
});

test('a conversation goes on: each message is on the tape once', async () => {
  await using s = await served((_, index) => ({ text: `Answer ${index}.` }));
  const model = await s.model();
  const messages: ModelMessage[] = [];
  for (const content of ['One', 'Two', 'Three']) {
    messages.push(u(content));
    messages.push(...(await generateText({ model, messages })).responseMessages);
  }
  expect(s.lines()).toEqual(
    ['One', 'Two', 'Three'].flatMap((text, i) => [`user: ${text}`, `assistant: Answer ${i}.`]),
  );
  expect(s.entries().some(({ name }) => name === 'history/diverged')).toBe(false);
});

test('an application that continues with the messages of the tape sends what the SDK alone would send', async () => {
  await using s = await served(adding);
  const tools = recordedTools(s.main, { add });
  const { responseMessages } = await generateText({ model: await s.model(), tools, prompt, ...loop });
  const { messages } = await s.main.view({ target: { provider: s.alone.provider } });
  const read = (await toPrompt(messages, (hash) => s.store.entries.blob(hash))).slice(0, -1);
  const next = { role: 'user', content: 'Thanks.' } as const;
  const found: Divergence[] = [];
  const model = await recorded(s.main, s.alone, { onDivergence: (one) => found.push(one) });
  const thanked = { tools: { add }, maxRetries: 0 };
  await generateText({ model, messages: [...read, next], ...thanked });
  await generateText({ model: s.alone, messages: [u(prompt), ...responseMessages, next], ...thanked });
  const [mine, alone] = bodies(s.provider.requests.slice(2));
  // The tape has the arguments as the model gave them; the SDK sends them with the defaults of its schema.
  expect(JSON.stringify(mine)).toBe(JSON.stringify(alone).replace(String.raw`,\"unit\":\"apples\"`, ''));
  expect(found).toEqual([]);
  expect(s.lines().slice(6)).toEqual(['user: Thanks.', addedLines[1], 'event run/waiting']);
});

test('an existing conversation is taken over with its answers', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  const messages: ModelMessage[] = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello.' },
    { role: 'user', content: 'How are you?' },
  ];
  await generateText({ model: await s.model(), messages });
  expect(s.lines()).toEqual(['user: Hi', 'assistant: Hello.', 'user: How are you?', 'assistant: Fine.']);
  expect(s.entries()[1]?.meta).toEqual({ source: 'history' });
  expect(await s.main.usage()).toMatchObject({ steps: 1 });
});

/** Sends histories one after another; returns what differed. */
async function conversed(s: Awaited<ReturnType<typeof served>>, ...histories: ModelMessage[][]) {
  const found: Divergence[] = [];
  const model = await recorded(s.main, s.alone, { onDivergence: (one) => found.push(one) });
  for (const messages of histories) await generateText({ model, messages, tools: { add } });
  return found;
}

const answering: Answer = (_, index) => ({ text: `Answer ${index}.` });
const shownOf = async (s: Awaited<ReturnType<typeof served>>) =>
  (await s.main.view()).messages.map(({ content }) => content.map(({ text }) => text).join(''));

test('an edited message: the tape reads as the history that was sent, and says what differs', async () => {
  await using s = await served(answering);
  const events: string[] = [];
  const stop = new AbortController();
  const listening = (async () => {
    for await (const event of s.main.subscribe({ signal: stop.signal })) events.push(event.type);
  })();
  const found = await conversed(
    s,
    [u('One')],
    [u('One'), a('Answer 0.'), u('Two')],
    [u('One'), a('Changed.'), u('Two'), a('Answer 1.'), u('Three')],
  );
  stop.abort();
  await listening;
  expect(found).toEqual([
    { session: 'main', kind: 'changed', seq: 3, recorded: 'Answer 0.', index: 1, sent: 'Changed.' },
  ]);
  expect(events).toContain('history-diverged');
  expect(s.entries().find(({ name }) => name === 'history/diverged')?.payload).toMatchObject({
    kind: 'changed',
    message: 'the history has "Changed." in place of @3: Answer 0.',
  });
  expect(await shownOf(s)).toEqual(['One', 'Changed.', 'Two', 'Answer 1.', 'Three', 'Answer 2.']);
  expect(s.lines().slice(4)).toEqual([
    'rewind',
    'event history/diverged',
    'assistant: Changed.',
    'user: Two',
    'assistant: Answer 1.',
    'user: Three',
    'assistant: Answer 2.',
  ]);
  expect(s.entries()[8]?.meta).toMatchObject({ source: 'history', copies: 5, model: 'test-model' });
  expect(await s.main.usage()).toMatchObject({ steps: 3 });
  expect([...s.store.verify('main')]).toEqual([]);
});

test('a truncated history: what it left out is hidden', async () => {
  await using s = await served(answering);
  const found = await conversed(s, [u('One')], [u('One'), a('Answer 0.'), u('Two')], [u('One')]);
  expect(found).toMatchObject([{ kind: 'shortened', seq: 3, recorded: 'Answer 0.' }]);
  expect(await shownOf(s)).toEqual(['One', 'Answer 2.']);
});

test('an application that sends only the last messages: the view begins there, and nothing is recorded twice', async () => {
  await using s = await served(answering);
  const found = await conversed(
    s,
    [u('One')],
    [u('One'), a('Answer 0.'), u('Two')],
    [u('Two'), a('Answer 1.'), u('Three')],
    [u('Two'), a('Answer 1.'), u('Three'), a('Answer 2.'), u('Four')],
  );
  expect(found).toEqual([{ session: 'main', kind: 'window', seq: 4, recorded: 'Two' }]);
  expect(await shownOf(s)).toEqual(['Two', 'Answer 1.', 'Three', 'Answer 2.', 'Four', 'Answer 3.']);
  expect(s.lines().filter((line) => line === 'user: Two')).toHaveLength(1);
});

test('an application that summarises its history: the summary takes the place of what it summarises', async () => {
  await using s = await served(answering);
  const found = await conversed(
    s,
    [u('One')],
    [u('One'), a('Answer 0.'), u('Two')],
    [u('So far: one, two.'), a('Answer 1.'), u('Three')],
  );
  expect(found).toMatchObject([{ kind: 'changed', seq: 2, recorded: 'One', sent: 'So far: one, two.' }]);
  expect(await shownOf(s)).toEqual(['So far: one, two.', 'Answer 1.', 'Three', 'Answer 2.']);
});

test('an edited result is a divergence, and the answer with its call is recorded again', async () => {
  await using s = await served(adding);
  const { responseMessages } = await generateText({
    model: await s.model(),
    tools: recordedTools(s.main, { add }),
    prompt,
    ...loop,
  });
  const messages = JSON.parse(
    JSON.stringify(responseMessages).replace('"value":3', '"value":4'),
  ) as ModelMessage[];
  const found = await conversed(s, [u(prompt), ...messages, u('Sure?')]);
  expect(found).toMatchObject([{ kind: 'changed', recorded: '[add → 3]', sent: '[add → 4]' }]);
  expect([...s.store.verify('main')]).toEqual([]);
  expect((await s.main.view()).messages.map(({ role }) => role)).toEqual([
    ...['user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'tool'],
  ]);
});

test('a failure is recorded, and the same history can be sent again', async () => {
  await using s = await served((_, index) =>
    index === 0 ? { status: 503, message: 'busy', retryAfterMs: 20 } : { text: 'Hi.' },
  );
  const model = await s.model();
  await expect(generateText({ model, prompt: 'Hi', maxRetries: 0 })).rejects.toThrow('busy');
  expect(s.lines()).toEqual(['user: Hi', 'event run/error']);
  expect(s.entries()[1]?.payload).toMatchObject({ message: 'busy', retry_at: expect.any(String) });
  await generateText({ model, prompt: 'Hi', maxRetries: 0 });
  expect(s.lines()).toEqual(['user: Hi', 'event run/error', 'assistant: Hi.']);
});

test('a stream that breaks off keeps its part; a call in it does not run, and the retry hides it', async () => {
  let ran = 0;
  await using s = await served((_, index) =>
    index === 0 ? { text: ['I think ', 'that '], cut: true } : { text: 'Hi.' },
  );
  const model = await s.model();
  const tools = recordedTools(s.main, {
    add: tool({ inputSchema: z.object({}), execute: async () => (ran += 1) }),
  });
  const first = streamText({ model, prompt: 'Hi', tools, maxRetries: 0, onError: () => {} });
  await expect(Array.fromAsync(first.stream)).rejects.toThrow('Failed to process successful response');
  expect(s.lines()).toEqual(['user: Hi', 'assistant: I think that', 'event run/error']);
  expect(s.entries()[1]?.meta).toMatchObject({ partial: true, step: 1 });
  const found: Divergence[] = [];
  const again = await recorded(s.main, s.alone, { onDivergence: (one) => found.push(one) });
  await generateText({ model: again, prompt: 'Hi' });
  expect(found).toEqual([]);
  expect(await shownOf(s)).toEqual(['Hi', 'Hi.']);
  expect(ran).toBe(0);
});

test('an abort of the application is recorded with the part that had arrived', async () => {
  await using s = await served(() => ({ text: ['I think ', 'that '], hang: true }));
  const abort = new AbortController();
  const { textStream } = streamText({ model: await s.model(), prompt: 'Hi', abortSignal: abort.signal });
  for await (const piece of textStream) if (piece.includes('that')) abort.abort(new Error('enough'));
  await s.deck.idle();
  expect(s.lines()).toEqual(['user: Hi', 'assistant: I think that', 'event run/aborted']);
  expect(s.entries()[2]?.payload).toMatchObject({ reason: 'enough' });
  expect(await s.main.status()).toMatchObject({ state: 'idle' });
});

test('session.abort stops a call, and a message sent meanwhile waits', async () => {
  await using s = await served(() => ({ text: ['I think '], hang: true }));
  const { textStream } = streamText({ model: await s.model(), prompt: 'Hi', onError: () => {} });
  const reading = (async () => {
    for await (const _ of textStream) void s.main.abort('stop it');
  })();
  await reading.catch(() => {});
  await s.deck.idle();
  expect(s.lines()).toEqual(['user: Hi', 'assistant: I think', 'event run/aborted']);
  expect(s.entries()[2]?.payload).toMatchObject({ reason: 'stop it' });
});

test('one call at a time has the session: another call and a run are refused', async () => {
  await using s = await served((_, index) =>
    index === 0 ? { text: ['One '], hang: true } : { text: 'Two' },
  );
  const abort = new AbortController();
  const model = await s.model();
  const { textStream } = streamText({ model, prompt: 'Hi', abortSignal: abort.signal });
  for await (const _ of textStream) {
    const busy = { code: 'SESSION_BUSY' };
    await expect(generateText({ model, prompt: 'Hi', maxRetries: 0 })).rejects.toMatchObject(busy);
    await expect(s.main.run('Hi', { model: s.alone })).rejects.toMatchObject(busy);
    abort.abort();
  }
  await s.deck.idle();
  await generateText({ model, prompt: 'Hi' });
  expect(s.lines()).toEqual(['user: Hi', 'assistant: One', 'event run/aborted', 'rewind', 'assistant: Two']);
});

test('a fork in the middle goes on by itself', async () => {
  await using s = await served(answering);
  await conversed(s, [u('One')], [u('One'), a('Answer 0.'), u('Two')]);
  const idea = await s.main.branch(3, { name: 'idea' });
  const { messages } = await idea.view();
  const read = (await toPrompt(messages, (hash) => s.store.entries.blob(hash))).slice(0, -1);
  await generateText({ model: await recorded(idea, s.alone), messages: [...read, u('Otherwise')] });
  expect(s.lines('idea').filter((line) => !line.startsWith('anchor'))).toEqual([
    'user: One',
    'assistant: Answer 0.',
    'user: Otherwise',
    'assistant: Answer 2.',
  ]);
  expect(s.lines()).toHaveLength(4);
});

test('a child that records an application is merged with its answer', async () => {
  await using s = await served(answering);
  await conversed(s, [u('One')]);
  const child = await s.main.fork({ name: 'child' });
  const { messages } = await child.view();
  const read = (await toPrompt(messages, (hash) => s.store.entries.blob(hash))).slice(0, -1);
  await generateText({ model: await recorded(child, s.alone), messages: [...read, u('Check it.')] });
  await s.main.merge(child);
  expect(s.lines().at(-1)).toContain('Answer 1.');
  expect((await audited(s.store)).findings).toEqual([]);
  expect([...s.store.verify()]).toEqual([]);
});
