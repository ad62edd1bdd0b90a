import { delegateTool, openDeck } from '@tapedeck/runtime';
import { catchUp, stoppingFetch } from '@tapedeck/runtime/chat-client';
import { DefaultChatTransport, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { serveChats, TestChat } from '../support/chat.ts';
import { type Chatting, chatting } from '../support/chatting.ts';
import { type ChatAnswer, isAfterTools, lastUserText, startProvider } from '../support/provider.ts';
import { tempHome } from '../support/temp-home.ts';

/** A chat that catches up whenever an answer ends, as a page does. */
function following({ server: { api } }: Chatting): TestChat {
  const chat: TestChat = new TestChat({
    id: 'main',
    transport: new DefaultChatTransport({ api, fetch: stoppingFetch() }),
    onFinish: () => void catchUp(chat, { api }),
  });
  return chat;
}

/** In the end, the chat holds exactly what the session says. */
async function expectInStep({ main }: Chatting, ...chats: readonly TestChat[]): Promise<void> {
  for (const chat of chats) {
    await expect
      .poll(async () => {
        await main.idle();
        return JSON.stringify(chat.plain) === JSON.stringify(await main.uiMessages());
      })
      .toBe(true);
    expect([chat.status, chat.error]).toEqual(['ready', undefined]);
  }
}

const numbers = z.object({ a: z.number(), b: z.number() });
const asks: ChatAnswer = {
  text: 'Let me add.',
  calls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }],
};

test('a message that is sent while an answer is written is answered after it, in the same page', async () => {
  await using s = await chatting((request) => ({ text: ['On ', lastUserText(request)], pauseMs: 40 }));
  const chat = s.server.chat('main');
  const first = chat.sendMessage({ text: 'One' });
  await expect.poll(() => chat.lastMessage?.role).toBe('assistant');
  await Promise.all([first, chat.sendMessage({ text: 'Two' })]);
  expect(chat.plain).toEqual(await s.main.uiMessages());
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
});

test('a message that is sent before an answer begins comes after it, once the page has caught up', async () => {
  await using s = await chatting((request) => ({ text: ['On ', lastUserText(request)], pauseMs: 40 }));
  const chat = following(s);
  await Promise.all([chat.sendMessage({ text: 'One' }), chat.sendMessage({ text: 'Two' })]);
  await expectInStep(s, chat);
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
});

test('a page follows what another page sends meanwhile, and its answer', async () => {
  await using s = await chatting((request) => ({ text: ['On ', lastUserText(request)], pauseMs: 60 }));
  const [one, two] = [following(s), following(s)];
  const first = one.sendMessage({ text: 'One' });
  await expect.poll(() => one.status).toBe('streaming');
  await Promise.all([first, two.sendMessage({ text: 'Two' })]);
  await expectInStep(s, one, two);
  expect(one.messages).toHaveLength(4);
});

test('a message that steers a run is a part of the answer, with the same id', async () => {
  const isSteered = Promise.withResolvers<void>();
  const add = tool({
    inputSchema: numbers,
    execute: async ({ a, b }) => {
      await isSteered.promise;
      return a + b;
    },
  });
  await using s = await chatting(
    (request) => (isAfterTools(request) || lastUserText(request).includes('also') ? { text: '3.' } : asks),
    {
      tools: { add },
    },
  );
  const chat = s.server.chat('main');
  const sending = chat.sendMessage({ text: '1 + 2?' });
  await expect.poll(() => s.lines().length).toBe(2);
  await s.main.send('Say it also in words.', { mode: 'steer' });
  isSteered.resolve();
  await sending;
  expect(chat.lastMessage?.parts.map(({ type }) => type)).toContain('steering-message');
  expect(chat.plain).toEqual(await s.main.uiMessages());
});

test('the report of a child that is merged during a run is in the answer at once', async () => {
  await using s = await chatting(
    async (request) => {
      const text = JSON.stringify(request.messages.slice(-2));
      if (text.includes('Check the docs') && !isAfterTools(request)) return { text: 'The docs are right.' };
      if (text.includes('reported back')) return { text: 'Good.' };
      if (text.includes('started')) {
        await expect.poll(() => s.store.inbox.list('main').length).toBe(1);
        return asks;
      }
      const tasks = [{ task: 'Check the docs.' }];
      return {
        calls: [{ id: 'd1', name: 'delegate', arguments: { tasks, inherit: 'nothing', background: true } }],
      };
    },
    {
      tools: { delegate: delegateTool(), add: tool({ inputSchema: numbers, execute: ({ a, b }) => a + b }) },
    },
  );
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: 'Check all.' });
  const types = chat.lastMessage?.parts.map(({ type }) => type) ?? [];
  expect(types.indexOf('data-merge')).toBeGreaterThan(types.indexOf('tool-add'));
  expect(types.at(-1)).toBe('text');
  await s.main.idle();
  expect(chat.plain).toEqual(await s.main.uiMessages());
});

test('the report of a child that is merged between two answers is there, once the page has caught up', async () => {
  await using s = await chatting((request) => ({ text: `On ${lastUserText(request).slice(0, 20)}` }));
  const chat = following(s);
  await chat.sendMessage({ text: 'One' });
  await s.main.delegate([{ task: 'Check the docs.', inherit: 'nothing' }]);
  await chat.sendMessage({ text: 'Two' });
  await expectInStep(s, chat);
  expect(chat.messages[2]?.parts).toMatchObject([{ type: 'data-merge' }]);
});

test('calls that a new message denies are shown so, once the page has caught up', async () => {
  await using s = await chatting(
    (request) => (lastUserText(request).includes('Two') ? { text: 'OK.' } : asks),
    {
      tools: { add: tool({ inputSchema: numbers, execute: ({ a, b }) => a + b, needsApproval: true }) },
    },
  );
  const chat = following(s);
  await chat.sendMessage({ text: 'One' });
  await expectInStep(s, chat);
  await chat.sendMessage({ text: 'Two' });
  await expectInStep(s, chat);
  expect(chat.messages[1]?.parts.at(-1)).toMatchObject({ type: 'tool-add', state: 'output-denied' });
});

test('a page that stops the run holds what had arrived', async () => {
  await using s = await chatting(() => ({ text: ['I ', 'wonder '], hang: true }));
  const chat = following(s);
  const sending = chat.sendMessage({ text: 'Well?' });
  await expect.poll(() => JSON.stringify(chat.messages)).toContain('wonder');
  await chat.stop();
  await sending;
  await expectInStep(s, chat);
  expect(s.lines().at(-1)).toBe('event run/aborted');
});

test('catching up leaves a message that could not be sent, and one that is being answered', async () => {
  await using s = await chatting(() => ({ text: ['Hi', '.'], pauseMs: 60 }));
  const { api } = s.server;
  const chat = following(s);
  const sending = chat.sendMessage({ text: 'One' });
  await expect.poll(() => chat.status).toBe('streaming');
  const before = chat.plain[0];
  expect(await catchUp(chat, { api })).toBe(true);
  expect(chat.plain[0]).toEqual(before);
  await sending;
  await expectInStep(s, chat);
  await chat.sendMessage({ text: '' });
  expect(chat.status).toBe('error');
  expect(await catchUp(chat, { api })).toBe(true);
  expect(chat.messages).toHaveLength(3);
  expect(await catchUp(chat, { api: `${api}/none` })).toBe(false);
});

test('a page follows answers that another process writes, one after another', async () => {
  await using provider = await startProvider((request) => ({
    text: ['On ', lastUserText(request)],
    pauseMs: 150,
  }));
  using home = tempHome();
  const env = { OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'test-key' };
  const options = { home: home.path, model: 'openai-compatible/test-model', env };
  await using writer = await openDeck(options);
  await using reader = await openDeck(options);
  await using server = await serveChats(reader);
  const main = await writer.session('main');
  const run = main.run('One');
  await main.send('Two');
  const { api } = server;
  const chat: TestChat = new TestChat({
    id: 'main',
    transport: new DefaultChatTransport({ api }),
    onFinish: () => void catchUp(chat, { api }),
  });
  await expect
    .poll(async () => {
      await catchUp(chat, { api });
      return chat.messages.length;
    })
    .toBeGreaterThan(0);
  await run;
  await main.idle();
  await expect
    .poll(async () => JSON.stringify(chat.plain) === JSON.stringify(await main.uiMessages()))
    .toBe(true);
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
});
