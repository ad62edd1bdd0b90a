import { type ChildProgress, delegateTool } from '@tapedeck/runtime';
import { stoppingFetch } from '@tapedeck/runtime/chat-client';
import { user } from '@tapedeck/tape';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  readUIMessageStream,
  TextStreamChatTransport,
  tool,
  type UIMessage,
} from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { serveChats, TestChat } from '../support/chat.ts';
import { type Chatting, chatting, expectSame, shape } from '../support/chatting.ts';
import { startProcess } from '../support/process.ts';
import {
  type ChatAnswer,
  type ChatRequest,
  isAfterTools,
  lastUserText,
  startProvider,
} from '../support/provider.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const numbers = z.object({ a: z.number(), b: z.number() });
const add = tool({ inputSchema: numbers, execute: ({ a, b }) => a + b });
const asks: ChatAnswer = {
  reasoning: 'Numbers.',
  text: 'Let me add.',
  calls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }],
  usage: [20, 9],
};
const adding = (request: ChatRequest): ChatAnswer =>
  isAfterTools(request) ? { text: ['It ', 'is 3.'], usage: [40, 4] } : asks;

test('an answer streams, with its calls, their results and what it cost', async () => {
  await using s = await chatting(adding, { tools: { add } });
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: '1 + 2?' });
  const [asked, answer] = await expectSame(s, chat);
  expect(asked).toMatchObject({ role: 'user', parts: [{ type: 'text', text: '1 + 2?' }] });
  expect(shape(answer)).toEqual([
    'step-start',
    'reasoning done',
    'text done',
    'tool-add output-available',
    'step-start',
    'text done',
  ]);
  expect(answer?.metadata).toMatchObject({ model: 'test-model', usage: { input: 60, output: 13 } });
  await chat.sendMessage({ text: 'And again?' });
  expect(await expectSame(s, chat)).toHaveLength(4);
});

test('a message is written once, however often it is sent', async () => {
  await using s = await chatting(() => ({ text: 'Hi.' }));
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: 'Hello' });
  const body = JSON.stringify({ id: 'main', messages: chat.messages.slice(0, 1), trigger: 'submit-message' });
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  const again = await Promise.all([1, 2, 3].map(async () => await (await s.server.ask('', init)).text()));
  for (const stream of again) expect(stream).toContain('"delta":"Hi."');
  expect(s.lines()).toEqual(['user: Hello', 'assistant: Hi.']);
  await expectSame(s, chat);
});

test('two requests of one message at once make one answer', async () => {
  await using s = await chatting(() => ({ text: ['Hi', '.'], pauseMs: 30 }));
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
  const body = JSON.stringify({ id: 'main', message });
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  const both = await Promise.all([1, 2].map(async () => await (await s.server.ask('', init)).text()));
  for (const stream of both) expect(stream).toContain('"delta":"Hi"');
  expect(s.lines()).toEqual(['user: Hello', 'assistant: Hi.']);
});

test('the files of a message are blobs of the store, and come back as they were', async () => {
  await using s = await chatting(() => ({ text: 'A picture.' }));
  const chat = s.server.chat('main');
  const bytes = Buffer.alloc(3_000, 7).toString('base64');
  const url = `data:image/png;base64,${bytes}`;
  await chat.sendMessage({
    text: 'What is it?',
    files: [{ type: 'file', mediaType: 'image/png', filename: 'a.png', url }],
  });
  await expectSame(s, chat);
  const sent = [...s.store.entries.read('main')].find(({ kind }) => kind === 'message');
  expect(JSON.stringify(sent?.payload)).not.toContain(bytes.slice(0, 100));
  expect(JSON.stringify(s.provider.requests[0]?.messages)).toContain(bytes.slice(0, 100));
});

test.each([
  { approved: true, state: 'output-available' },
  { approved: false, state: 'output-denied' },
])('an answer to an approval continues the message: $state', async ({ approved, state }) => {
  await using s = await chatting(adding, { tools: { add: { ...add, needsApproval: true } } });
  const chat = s.server.chat('main', {
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  await chat.sendMessage({ text: '1 + 2?' });
  const [, waiting] = await expectSame(s, chat);
  expect(shape(waiting)?.at(-1)).toBe('tool-add approval-requested');
  await chat.addToolApprovalResponse({ id: 'c1', approved, reason: 'I say so' });
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  const messages = await expectSame(s, chat);
  expect(messages).toHaveLength(2);
  expect(messages[1]?.id).toBe(waiting?.id);
  expect(shape(messages[1])).toContain(`tool-add ${state}`);
  expect(messages[1]?.parts.find(({ type }) => type === 'tool-add')).toMatchObject({
    approval: { id: 'c1', approved, reason: 'I say so' },
  });
});

test('a chat receives the offers of a call, and its answer counts for good', async () => {
  await using s = await chatting(adding, { tools: { add: { ...add, needsApproval: true } } });
  const told: unknown[] = [];
  const chat = s.server.chat('main', {
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onData: ({ type, data }) => {
      if (type === 'data-approval') told.push(data);
    },
  });
  await chat.sendMessage({ text: '1 + 2?' });
  expect(told).toEqual([{ toolCallId: 'c1', claims: ['add', 'opaque(add)'], offers: ['add'] }]);
  const answer = async (offer: string) =>
    await chat.addToolApprovalResponse({
      id: 'c1',
      approved: true,
      options: { body: { remember: { c1: [offer] } } },
    });
  await answer('add');
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  await expectSame(s, chat);
  const granted = [...s.store.entries.read('main', { name: 'permission/granted' })];
  expect(granted.map(({ payload }) => payload)).toEqual([{ rule: 'allow add', toolCallId: 'c1' }]);
});

test.each([
  { given: { output: 3 }, state: 'output-available' },
  { given: { state: 'output-error', errorText: 'no calculator' }, state: 'output-error' },
] as const)(
  'a result of a tool that the client runs continues the message: $state',
  async ({ given, state }) => {
    await using s = await chatting(adding, {
      tools: { add: tool({ inputSchema: numbers, outputSchema: z.number() }) },
    });
    const chat = s.server.chat('main', {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    });
    await chat.sendMessage({ text: '1 + 2?' });
    expect(shape((await expectSame(s, chat))[1])?.at(-1)).toBe('tool-add input-available');
    await chat.addToolOutput({ tool: 'add', toolCallId: 'c1', ...given });
    await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
    const messages = await expectSame(s, chat);
    expect(messages).toHaveLength(2);
    expect(shape(messages[1])).toContain(`tool-add ${state}`);
  },
);

test('an answer that is given at another place continues the same message', async () => {
  await using s = await chatting(adding, { tools: { add: { ...add, needsApproval: true } } });
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: '1 + 2?' });
  const { run } = await s.main.respond('c1', { approved: true });
  await chat.resumeStream();
  await run;
  const [, answer] = await expectSame(s, chat);
  expect(shape(answer)).toContain('tool-add output-available');
});

test('a call with arguments that do not fit is an error in the message', async () => {
  await using s = await chatting(
    (request) =>
      isAfterTools(request)
        ? { text: 'Sorry.' }
        : { calls: [{ id: 'c1', name: 'add', arguments: { a: 'x' } }] },
    { tools: { add } },
  );
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: '1 + 2?' });
  expect(shape((await expectSame(s, chat))[1])).toContain('tool-add output-error');
});

test('a chat that lost its connection resumes from the first chunk, then live', async () => {
  const words = Array.from({ length: 40 }, (_, i) => `word${i} `);
  await using s = await chatting(() => ({ text: words, pauseMs: 20 }));
  const chat = s.server.chat('main');
  void chat.sendMessage({ text: 'Tell me.' });
  await expect.poll(() => JSON.stringify(chat.messages)).toContain('word3');
  // A page that is closed and opened again.
  await chat.stop();
  const later = s.server.chat('main', { messages: (await s.main.uiMessages()).slice(0, 1) });
  await later.resumeStream();
  const [, answer] = await expectSame(s, later);
  expect(answer?.parts.at(-1)).toMatchObject({ type: 'text', text: words.join('') });
  expect(s.lines().at(-1)).toBe(`assistant: ${words.join('').trim()}`);
});

test('a client that reads an answer whose process has died lets it go on, where the endpoint is to', async () => {
  await using s = await chatting((_, index) =>
    index === 0 ? { text: 'So it is.' } : { status: 401, message: 'no' },
  );
  await using recovering = await serveChats(s.deck, { sessions: ['main'], recovers: true });
  const leave = (run: string, chunks: readonly object[]) => {
    s.store.entries.append('main', [{ ...user('Well?'), meta: { run } }]);
    const saved = chunks.map((chunk, index) => ({ index, chunk: chunk as never }));
    s.store.live.save([{ session: 'main', run, chunks: saved }]);
  };
  leave('killed', [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'I think ' },
  ]);
  expect((await s.server.ask('/main/stream')).status).toBe(204);
  const chats = [1, 2].map(() => recovering.chat('main', { messages: [] }));
  await Promise.all(chats.map((chat) => chat.resumeStream()));
  const [, answer] = await s.main.uiMessages();
  for (const chat of chats) expect(chat.plain).toEqual([answer]);
  expect(JSON.stringify(answer)).toMatch(/I think .*So it is\./);
  expect(s.provider.requests).toHaveLength(1);
  leave('again', []);
  const [chat] = chats;
  await chat?.resumeStream();
  expect(chat?.status).toBe('error');
});

test('an idle chat has no stream to resume', async () => {
  await using s = await chatting(() => ({ text: 'Hi.' }));
  expect((await s.server.ask('/main/stream')).status).toBe(204);
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: 'Hello' });
  expect((await s.server.ask('/main/stream')).status).toBe(204);
  await chat.resumeStream();
  await expectSame(s, chat);
});

test('DELETE stops the run, and the chat keeps what had arrived', async () => {
  await using s = await chatting(() => ({ text: ['I ', 'wonder '], hang: true }));
  const chat = s.server.chat('main');
  const sending = chat.sendMessage({ text: 'Well?' });
  await expect.poll(() => JSON.stringify(chat.messages)).toContain('wonder');
  expect((await s.server.ask('/main/stream', { method: 'DELETE' })).status).toBe(204);
  await sending;
  await expectSame(s, chat);
  expect(s.lines()).toEqual(['user: Well?', 'assistant: I wonder', 'event run/aborted']);
});

test('the stop of a client with stoppingFetch stops the run, also one that it has resumed', async () => {
  await using s = await chatting(() => ({ text: ['I ', 'wonder '], hang: true }));
  const transport = new DefaultChatTransport({ api: s.server.api, fetch: stoppingFetch() });
  const chat = new TestChat({ id: 'main', transport });
  void chat.sendMessage({ text: 'Well?' });
  await expect.poll(() => JSON.stringify(chat.messages)).toContain('wonder');
  await chat.stop();
  await s.main.idle();
  expect(s.lines()).toEqual(['user: Well?', 'assistant: I wonder', 'event run/aborted']);
  void s.main.run('And?');
  const later = new TestChat({ id: 'main', transport });
  void later.resumeStream();
  await expect.poll(() => JSON.stringify(later.messages)).toContain('wonder');
  await later.stop();
  await s.main.idle();
  expect(s.lines().at(-1)).toBe('event run/aborted');
});

test('regenerating answers the same message again, and hides the first answer', async () => {
  await using s = await chatting((_, index) => ({ text: `Answer ${index}.` }));
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: 'One' });
  await chat.sendMessage({ text: 'Two' });
  await chat.regenerate();
  const messages = await expectSame(s, chat);
  expect(
    messages.map(({ parts }) => parts.map((part) => ('text' in part ? part.text : '')).join('')),
  ).toEqual(['One', 'Answer 0.', 'Two', 'Answer 2.']);
  await chat.regenerate({ messageId: messages[1]?.id ?? '' });
  expect(await expectSame(s, chat)).toHaveLength(2);
});

test('editing a message continues from before it, also while its answer is written', async () => {
  await using s = await chatting((request) =>
    lastUserText(request).includes('Too')
      ? { text: ['Hm '], hang: true }
      : { text: `About ${lastUserText(request)}` },
  );
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: 'One' });
  void chat.sendMessage({ text: 'Too' });
  await expect.poll(() => JSON.stringify(chat.messages)).toContain('Hm');
  await chat.stop();
  await chat.sendMessage({ text: 'Two', messageId: chat.messages[2]?.id ?? '' });
  const messages = await expectSame(s, chat);
  expect(messages).toHaveLength(4);
  expect(JSON.stringify(messages)).not.toContain('Too');
  await chat.sendMessage({ text: 'One', messageId: chat.messages[0]?.id ?? '' });
  expect(await expectSame(s, chat)).toHaveLength(2);
});

test('two tabs on one chat show the same', async () => {
  await using s = await chatting((request) => ({ text: ['On ', lastUserText(request)], pauseMs: 200 }));
  const one = s.server.chat('main');
  const sending = one.sendMessage({ text: 'One' });
  await expect.poll(() => one.status).toBe('streaming');
  const two = s.server.chat('main', { messages: (await s.main.uiMessages()).slice(0, 1) });
  await Promise.all([sending, two.resumeStream()]);
  await expectSame(s, one);
  await expectSame(s, two);
  await two.sendMessage({ text: 'Two' });
  expect(await expectSame(s, two)).toHaveLength(4);
});

test('a message that is sent during a run is answered after it', async () => {
  await using s = await chatting((request) => ({ text: ['On ', lastUserText(request)], pauseMs: 60 }));
  const one = s.server.chat('main');
  const first = one.sendMessage({ text: 'One' });
  await expect.poll(() => one.status).toBe('streaming');
  const two = s.server.chat('main');
  await two.sendMessage({ text: 'Two' });
  await first;
  expect(s.lines()).toEqual(['user: One', 'assistant: On One', 'user: Two', 'assistant: On Two']);
  const messages = await s.main.uiMessages();
  expect(messages.slice(0, 2)).toEqual(one.plain);
  expect(messages.slice(2)).toEqual(two.plain);
});

/** A request with one message, and the texts and errors of its stream. */
async function send(s: Chatting, id: string, text: string, more: object = {}): Promise<string> {
  const message = { id, role: 'user', parts: [{ type: 'text', text }] };
  const response = await s.server.ask('', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'main', messages: [message], ...more }),
  });
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  const chunks = lines.map(
    (line) => JSON.parse(line.slice(6)) as { type: string; delta?: string; errorText?: string },
  );
  if (response.status !== 200) return `refused ${response.status}`;
  return chunks.map(({ delta, errorText }) => delta ?? errorText ?? '').join('');
}

test('each of many messages that come at once gets its answer', async () => {
  await using s = await chatting((request) => ({ text: ['On ', lastUserText(request)], pauseMs: 20 }));
  const texts = Array.from({ length: 6 }, (_, i) => `m${i}`);
  const answers = await Promise.all(texts.map(async (text) => await send(s, text, text)));
  expect(answers).toEqual(texts.map((text) => `On ${text}`));
  expect((await s.main.uiMessages()).filter(({ role }) => role === 'user')).toHaveLength(6);
});

test('forty requests of one message make one answer, which each of them gets', async () => {
  await using s = await chatting(() => ({ text: ['Hi', '.'], pauseMs: 20 }));
  const answers = await Promise.all(Array.from({ length: 40 }, async () => await send(s, 'm1', 'Hello')));
  expect(new Set(answers)).toEqual(new Set(['Hi.']));
  expect(s.lines()).toEqual(['user: Hello', 'assistant: Hi.']);
});

test('of different messages with one id that come at once, one is taken', async () => {
  await using s = await chatting((request) => ({ text: `On ${lastUserText(request)}`, pauseMs: 20 }));
  const answers = await Promise.all([1, 2, 3, 4].map(async (n) => await send(s, 'm1', `text ${n}`)));
  expect(answers.filter((answer) => answer === 'refused 409')).toHaveLength(3);
  expect((await s.main.uiMessages()).filter(({ role }) => role === 'user')).toHaveLength(1);
});

test('the same approval from two tabs at once continues once, and both get the answer', async () => {
  await using s = await chatting(adding, { tools: { add: { ...add, needsApproval: true } } });
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: '1 + 2?' });
  await chat.addToolApprovalResponse({ id: 'c1', approved: true });
  const tabs = [1, 2].map(() => s.server.chat('main', { messages: structuredClone(chat.messages) }));
  await Promise.all(tabs.map(async (tab) => await tab.sendMessage()));
  for (const tab of tabs) await expectSame(s, tab);
  expect(s.lines().filter((line) => line.startsWith('add c1'))).toHaveLength(1);
});

test('an edit replaces the messages that wait, and a chat that loads sees what waits', async () => {
  await using s = await chatting((request) =>
    lastUserText(request).includes('slow')
      ? { text: ['Hm '], hang: true }
      : { text: `On ${lastUserText(request)}` },
  );
  const first = send(s, 'm1', 'slow one');
  await expect.poll(() => s.lines().length).toBe(1);
  const second = send(s, 'm2', 'two');
  await expect.poll(async () => JSON.stringify(await s.main.uiMessages())).toContain('"two"');
  expect((await s.main.uiMessages()).at(-1)).toMatchObject({ id: 'm2', role: 'user' });
  expect(await send(s, 'm1', 'one', { messageId: 'm1' })).toBe('On one');
  // The edit comes before its run, or stops it.
  expect(['the message was replaced by an edit before it', '']).toContain(await second);
  await first;
  const messages = await s.main.uiMessages();
  expect(messages.map(({ id, role }) => (role === 'user' ? id : role))).toEqual(['m1', 'assistant']);
});

test.each([
  ['edited', '2', { messageId: 'm2' }],
  ['generated again', 'two', { trigger: 'regenerate-message' }],
])('a message that waits can be %s, and the answer before it is not cut off', async (_, text, more) => {
  const gate = Promise.withResolvers<void>();
  await using s = await chatting(async (request) => {
    await gate.promise;
    return { text: `On ${lastUserText(request)}` };
  });
  const first = send(s, 'm1', 'one');
  await expect.poll(() => s.lines().length).toBe(1);
  const second = send(s, 'm2', 'two');
  await expect.poll(async () => JSON.stringify(await s.main.uiMessages())).toContain('"two"');
  const again = send(s, 'm2', text, more);
  await new Promise((resolve) => setTimeout(resolve, 50));
  gate.resolve();
  expect([await first, await again]).toEqual(['On one', `On ${text}`]);
  await second;
  const shown = (await s.main.uiMessages()).map(({ parts }) => JSON.stringify(parts));
  expect(shown).toEqual(
    ['one', 'On one', text, `On ${text}`].map((said) => expect.stringContaining(`"${said}"`)),
  );
});

test('the last turns of a session can be read alone', async () => {
  await using s = await chatting((request) => ({ text: `On ${lastUserText(request)}` }));
  for (const text of ['a', 'b', 'c']) await s.main.run(text);
  expect(await s.main.uiMessages({ last: 1 })).toHaveLength(2);
  const read = async (query: string) => await (await s.server.ask(`/main${query}`)).json();
  expect(((await read('?last=2')) as { messages: unknown[] }).messages).toHaveLength(4);
  expect((await s.server.ask('/main?last=0')).status).toBe(400);
});

test('a failure of the model is an error of the chat, and the next message works', async () => {
  await using s = await chatting((_, index) =>
    index === 0 ? { status: 401, message: 'no' } : { text: 'Hi.' },
  );
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: 'Hello' });
  expect(chat.status).toBe('error');
  await chat.sendMessage({ text: 'Again' });
  const messages = await expectSame(s, chat);
  expect(messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant']);
});

const server = `
  import { createServer } from 'node:http';
  import { chatHandler, nodeListener, openDeck } from '@tapedeck/runtime';
  const [home, url, port] = process.argv.slice(1);
  const env = { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'test-key' };
  const deck = await openDeck({ home, model: 'openai-compatible/test-model', env });
  const server = createServer(nodeListener(chatHandler(deck, { sessions: ['main'] })));
  server.listen(Number(port), '127.0.0.1', () => console.log('port ' + server.address().port));
  await deck.recover();
`;

test.runIf(sized(false, true, true))(
  'a chat resumes an answer after its server was killed and started again',
  async () => {
    await using provider = await startProvider((_, index) =>
      index === 0 ? { text: ['I ', 'think '], hang: true } : { text: ['So ', 'it ', 'is.'], pauseMs: 300 },
    );
    using home = tempHome();
    let port = '0';
    await using first = startProcess(server, home.path, provider.url, port);
    await first.prints('port');
    port = /port (\d+)/.exec(first.printed())?.[1] ?? '';
    const api = `http://127.0.0.1:${port}/api/chat`;
    const chat = new TestChat({ id: 'main', transport: new DefaultChatTransport({ api }) });
    const sending = chat.sendMessage({ text: 'Well?' });
    await expect.poll(() => JSON.stringify(chat.messages)).toContain('think');
    {
      // What is shown is saved a moment later.
      using store = home.open();
      await expect.poll(() => JSON.stringify(store.live.read('main'))).toContain('think');
    }
    await first.kill();
    await sending;
    expect(chat.status).toBe('error');
    await using second = startProcess(server, home.path, provider.url, port);
    await second.prints('port');
    await expect.poll(() => provider.requests.length).toBe(2);
    await chat.resumeStream();
    await expect.poll(() => chat.status).toBe('ready');
    const messages = (await (await fetch(`${api}/main`)).json()) as { messages: UIMessage[] };
    expect(messages.messages).toEqual(chat.plain);
    expect(JSON.stringify(chat.lastMessage)).toContain('I think ');
    expect(JSON.stringify(chat.lastMessage)).toContain('So it is.');
    expect(chat.messages).toHaveLength(2);
  },
);

test('a replay of a session and the stream of a respond can be read by the SDK', async () => {
  await using s = await chatting(adding, { tools: { add: { ...add, needsApproval: true } } });
  await s.main.run('1 + 2?');
  const { run } = await s.main.respond('c1', { approved: true });
  await run;
  const starts: string[] = [];
  const chunks = await Array.fromAsync(s.main.replay());
  for (const chunk of chunks) if (chunk.type === 'start') starts.push(chunk.messageId ?? '');
  expect(starts).toEqual([(await s.main.uiMessages())[1]?.id]);
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream: ReadableStream.from(chunks) })) last = message;
  expect(shape(last)).toContain('tool-add output-available');
  const first = (await run?.uiStream().getReader().read())?.value;
  expect(first).toMatchObject({ type: expect.stringMatching(/start|data-event/) });
  const own = run === undefined ? [] : await Array.fromAsync(run.uiStream());
  expect(own.find(({ type }) => type === 'start')).toMatchObject({ messageId: starts[0] });
});

test('a chat sees the children of a call at work, and keeps how they ended', async () => {
  const states: string[] = [];
  await using s = await chatting(
    (request) => {
      const text = JSON.stringify(request.messages.slice(-2));
      if (isAfterTools(request)) return { text: 'Both are done.' };
      if (text.includes('Check the docs'))
        return { text: ['The docs ', 'are right.'], pauseMs: 40, usage: [10, 4] };
      if (text.includes('Check the tests')) return { text: 'The tests pass.', usage: [11, 3] };
      const tasks = [{ task: 'Check the docs.' }, { task: 'Check the tests.' }];
      return { calls: [{ id: 'd1', name: 'delegate', arguments: { tasks, inherit: 'nothing' } }] };
    },
    { tools: { delegate: delegateTool() } },
  );
  const chat = s.server.chat('main', {
    onData: (part) => {
      if (part.type === 'data-child') states.push((part.data as ChildProgress).state);
    },
  });
  await chat.sendMessage({ text: 'Check all.' });
  const [, answer] = await expectSame(s, chat);
  const children = answer?.parts.filter(({ type }) => type === 'data-child') as { data: ChildProgress }[];
  expect(children.map(({ data }) => data)).toMatchObject([
    {
      task: 'Check the docs.',
      toolCallId: 'd1',
      state: 'ended',
      status: 'completed',
      steps: 1,
      tokens: 14,
      text: 'The docs are right.',
    },
    { task: 'Check the tests.', toolCallId: 'd1', state: 'ended', status: 'completed', steps: 1, tokens: 14 },
  ]);
  expect(states).toEqual(expect.arrayContaining(['started', 'running', 'ended']));
});

test('a text transport receives the text of the answer', async () => {
  await using s = await chatting(() => ({ text: ['Hi ', 'there.'] }));
  const api = `${s.server.api}?format=text`;
  const chat = new TestChat({ id: 'main', transport: new TextStreamChatTransport({ api }) });
  await chat.sendMessage({ text: 'Hello' });
  expect(chat.lastMessage?.parts.at(-1)).toMatchObject({ type: 'text', text: 'Hi there.' });
});
