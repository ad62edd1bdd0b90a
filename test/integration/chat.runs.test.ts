import { request as httpRequest } from 'node:http';
import { type ChatError, openDeck, type StartOptions } from '@tapedeck/runtime';
import { lastAssistantMessageIsCompleteWithApprovalResponses, TextStreamChatTransport, tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { serveChats, TestChat } from '../support/chat.ts';
import { chatting, expectSame, shape } from '../support/chatting.ts';
import { isAfterTools, lastUserText } from '../support/provider.ts';
import { served } from '../support/served.ts';

const add = tool({
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});

const post = (body: object, more = ''): [string, RequestInit] => [
  more,
  { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
];
const hello = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };

describe('the options of runs', () => {
  test('are those of the handler, for each act of a chat that starts a run', async () => {
    await using s = await served((request) => ({ text: `On ${lastUserText(request)}`, pauseMs: 20 }), {
      tools: { add },
    });
    const run = { instructions: 'Be brief.', tools: {}, settings: { temperature: 0.25 } };
    await using server = await serveChats(s.deck, { sessions: ['main'], run });
    const chat = server.chat('main');
    await Promise.all([
      chat.sendMessage({ text: 'one' }),
      server.ask(...post({ id: 'main', message: hello })),
    ]);
    await s.main.idle();
    await server.ask(...post({ id: 'main', messages: [hello], trigger: 'regenerate-message' }));
    const edited = { ...hello, parts: [{ type: 'text', text: 'two' }] };
    await s.main.idle();
    await server.ask(...post({ id: 'main', messages: [edited], messageId: 'm1' }));
    await s.main.idle();
    const { requests } = s.provider;
    expect(requests).toHaveLength(4);
    for (const one of requests) {
      expect(JSON.stringify(one.messages[0])).toContain('Be brief.');
      expect(one).toMatchObject({ temperature: 0.25 });
      expect(one.tools ?? []).toEqual([]);
    }
  });

  test('are what a function makes of a request, and what the client sends counts for nothing', async () => {
    await using s = await served(
      (request) =>
        isAfterTools(request)
          ? { text: 'Done.' }
          : {
              calls: [{ id: `c${request.messages.length}`, name: 'add', arguments: { a: 1, b: 2 } }],
            },
      { tools: { add } },
    );
    const seen: unknown[] = [];
    await using server = await serveChats(s.deck, {
      authorize: (request) => ({ prefix: `${request.headers.get('x-user')}.` }),
      run: (request, { session, body }): StartOptions | undefined => {
        seen.push([request.headers.get('x-user'), session, body.plan]);
        return body.plan === 'free' ? { maxSteps: 1 } : undefined;
      },
    });
    const more = { model: 'script:/etc/passwd', instructions: 'Obey.', maxSteps: 9, tools: {} };
    const ask = async (id: string, plan: string) => {
      const [path, init] = post({ id, message: hello, plan, ...more });
      const headers = { ...init.headers, 'x-user': 'ann' };
      return await (await server.ask(path, { ...init, headers })).text();
    };
    expect(await ask('a', 'free')).not.toContain('Done.');
    expect(await ask('b', 'full')).toContain('Done.');
    expect(seen).toEqual([
      ['ann', 'ann.a', 'free'],
      ['ann', 'ann.b', 'full'],
    ]);
    expect(JSON.stringify(s.provider.requests)).not.toContain('Obey');
  });

  test('continue a call that is approved', async () => {
    const asks = { ...add, needsApproval: true };
    await using s = await served((request) =>
      isAfterTools(request)
        ? { text: 'Three.' }
        : {
            calls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }],
          },
    );
    await using server = await serveChats(s.deck, { sessions: ['main'], run: { tools: { add: asks } } });
    const chat = server.chat('main', {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
    await chat.sendMessage({ text: '1 + 2?' });
    await chat.addToolApprovalResponse({ id: 'c1', approved: true });
    await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
    await expectSame(s, chat);
  });

  test('a signal ends a run, and the next one takes another', async () => {
    await using s = await served(() => ({ text: ['I ', 'wonder '], hang: true }));
    const stops: AbortController[] = [];
    await using server = await serveChats(s.deck, {
      sessions: ['main'],
      run: () => {
        const stop = new AbortController();
        stops.push(stop);
        return { signal: stop.signal };
      },
    });
    const chat = server.chat('main');
    for (const text of ['Hello', 'Again']) {
      const answered = chat.sendMessage({ text });
      await expect.poll(() => JSON.stringify(chat.lastMessage)).toMatch(/assistant.*I wonder/);
      stops.at(-1)?.abort();
      await answered;
    }
    expect(s.lines().filter((line) => line.includes('I wonder'))).toHaveLength(2);
    await expectSame(s, chat);
  });

  test.each([
    ['unknown', { steps: 3 } as StartOptions],
    ['of a wrong form', { maxSteps: 0 }],
    ['no model', { model: 'nonsense' }],
  ])('that are %s are a failure of the server, and write nothing', async (_, run) => {
    const errors: unknown[] = [];
    await using s = await served(() => ({ text: 'Hi.' }));
    await using server = await serveChats(s.deck, {
      sessions: ['other'],
      run,
      onError: (error) => void errors.push(error),
    });
    const response = await server.ask(...post({ id: 'other', message: hello }));
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ error: { code: 'CHAT_FAILED', message: 'the request failed' } });
    expect(errors).toMatchObject([{ code: 'SESSION_BAD_CONFIG' }]);
    expect((await s.deck.sessions()).map(({ session }) => session)).toEqual(['main']);
  });
});

describe('a failed answer', () => {
  const failing = async (more: { readonly onError?: (error: unknown) => string | undefined } = {}) => {
    const errors: unknown[] = [];
    const s = await served((_, index) =>
      index === 0
        ? { status: 401, message: 'key sk-12 of http://10.0.0.1 is bad' }
        : { text: ['It ', 'breaks'], breaks: true },
    );
    const server = await serveChats(s.deck, {
      authorize: () => ({ prefix: 'secret-user.' }),
      onError: (error) => {
        errors.push(error);
        return more.onError?.(error);
      },
    });
    return {
      ...s,
      server,
      errors,
      [Symbol.asyncDispose]: async () => {
        await server[Symbol.asyncDispose]();
        await s[Symbol.asyncDispose]();
      },
    };
  };

  test('tells the browser nothing of the server, whose operator gets the error', async () => {
    await using s = await failing();
    const chat = s.server.chat('a');
    await chat.sendMessage({ text: 'Hello' });
    expect(chat.error?.message).toBe('the answer failed');
    expect(s.errors).toMatchObject([{ code: 'SESSION_MODEL_FAILED', data: { session: 'secret-user.a' } }]);
    expect(String(s.errors[0])).toContain('10.0.0.1');
    const again = await (await s.server.ask(...post({ id: 'a', messages: [chat.messages[0]] }))).text();
    expect(again).toContain('the answer failed');
    expect(again).not.toContain('secret-user');
  });

  test('tells the browser what onError returns', async () => {
    await using s = await failing({ onError: (error) => `Sorry (${(error as ChatError).code})` });
    const chat = s.server.chat('a');
    await chat.sendMessage({ text: 'Hello' });
    expect(chat.error?.message).toBe('Sorry (SESSION_MODEL_FAILED)');
  });

  test('is a status of a text transport before the first text, and breaks the connection after it', async () => {
    await using s = await failing();
    const api = `${s.server.api}?format=text`;
    const chat = new TestChat({ id: 'a', transport: new TextStreamChatTransport({ api }) });
    await chat.sendMessage({ text: 'Hello' });
    expect(chat.status).toBe('error');
    expect(chat.error?.message).toContain('the request failed');
    expect(chat.error?.message).not.toContain('secret-user');
    await chat.sendMessage({ text: 'Again' });
    expect(chat.status).toBe('error');
    expect(chat.lastMessage?.parts).toContainEqual(
      expect.objectContaining({ type: 'text', text: 'It breaks' }),
    );
    expect(s.errors).toHaveLength(2);
    const ended = await new Promise<string>((resolve) => {
      const [path, init] = post({ id: 'b', message: hello }, '?format=text');
      const options = { method: 'POST', headers: init.headers as Record<string, string> };
      const request = httpRequest(`${s.server.api}${path}`, options, (response) => {
        response
          .on('end', () => resolve('ended'))
          .on('error', () => resolve('broken'))
          .resume();
      });
      request.end(String(init.body));
    });
    expect(ended).toBe('broken');
  });
});

test('an answer that another process without the tool has recorded goes on here, and without it the chat learns why', async () => {
  const asks = { ...add, needsApproval: true };
  await using s = await chatting(
    (request) =>
      isAfterTools(request)
        ? { text: 'Three.' }
        : { calls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }] },
    { tools: { add: asks } },
  );
  const automatic = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses };
  const chat = s.server.chat('main', automatic);
  await chat.sendMessage({ text: '1 + 2?' });
  await using bare = await openDeck({
    store: s.store,
    model: 'openai-compatible/test-model',
    env: s.provider.env,
  });
  await using other = await serveChats(bare);
  const there = other.chat('main', { ...automatic, messages: chat.plain });
  await there.addToolApprovalResponse({ id: 'c1', approved: true });
  await expect.poll(() => there.status).toBe('error');
  expect(there.error?.message).toBe(
    "cannot continue: the call of 'add' is approved, and waits for a server that has this tool",
  );
  const before = s.lines();
  await there.sendMessage();
  expect(there.error?.message).toContain('CHAT_CONFLICT');
  expect(s.lines()).toEqual(before);
  await chat.addToolApprovalResponse({ id: 'c1', approved: true });
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  await expectSame(s, chat);
});
