import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { getRequestListener } from '@hono/node-server';
import type { ChatAccess, ChatHandler, ChatOptions } from '@tapedeck/runtime';
import { tool, type UIMessage } from 'ai';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { serveChats } from '../support/chat.ts';
import { chatting } from '../support/chatting.ts';
import { isAfterTools } from '../support/provider.ts';
import { served } from '../support/served.ts';

const add = tool({ inputSchema: z.object({ a: z.number() }), execute: ({ a }) => a });

/** A chat with a call that waits for approval, and the messages of it. */
async function waiting(options?: ChatOptions) {
  const behind = await served(
    (request) =>
      isAfterTools(request)
        ? { text: 'Done.' }
        : { text: 'Wait.', calls: [{ id: 'c1', name: 'add', arguments: { a: 1 } }] },
    { tools: { add: { ...add, needsApproval: true } } },
  );
  const server = await serveChats(behind.deck, options);
  await behind.main.run('Add');
  const [asked, answer] = (await behind.main.uiMessages()) as [UIMessage, UIMessage];
  return {
    ...behind,
    server,
    asked,
    answer,
    post: async (body: unknown, headers: Record<string, string> = {}, path = '') =>
      await server.ask(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await behind[Symbol.asyncDispose]();
    },
  };
}

/** One for all requests that change nothing. */
let unchanged: Awaited<ReturnType<typeof waiting>>;
beforeAll(async () => {
  unchanged = await waiting();
  return async () => await unchanged[Symbol.asyncDispose]();
});

const hello = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
const errorOf = async (response: Response) =>
  ((await response.json()) as { error: { code: string; message: string } }).error;

describe('a request that cannot be taken is refused, and writes nothing', () => {
  test.each([
    ['no JSON', '{"id":', 400, 'CHAT_BAD_BODY', 'not JSON'],
    ['JSON that is no object', [], 400, 'CHAT_BAD_BODY', 'not an object'],
    ['no messages', { id: 'main', messages: [] }, 400, 'CHAT_BAD_BODY', 'no messages'],
    [
      'a message of an older SDK',
      { id: 'main', messages: [{ role: 'user', content: 'Hi' }] },
      400,
      'CHAT_BAD_BODY',
      'not valid',
    ],
    [
      'a call in the form of an older SDK',
      {
        id: 'main',
        messages: [
          {
            ...hello,
            role: 'assistant',
            parts: [
              { type: 'tool-invocation', toolInvocation: { state: 'result', toolCallId: 'c1', result: 7 } },
            ],
          },
        ],
      },
      400,
      'CHAT_BAD_BODY',
      'not valid',
    ],
    [
      'a part that a later SDK may have',
      { id: 'main', messages: [{ ...hello, parts: [{ type: 'hologram', url: 'data:,x' }] }] },
      400,
      'CHAT_BAD_BODY',
      'not valid',
    ],
    ['text in the place of JSON', 'messages=hello&id=main', 400, 'CHAT_BAD_BODY', 'not JSON'],
    [
      'an unknown role',
      { id: 'main', messages: [{ ...hello, role: 'tool' }] },
      400,
      'CHAT_BAD_BODY',
      'not valid',
    ],
    [
      'instructions',
      { id: 'main', messages: [{ ...hello, role: 'system' }] },
      400,
      'CHAT_BAD_BODY',
      "role 'system'",
    ],
    [
      'an unknown trigger',
      { id: 'main', messages: [hello], trigger: 'delete' },
      400,
      'CHAT_BAD_BODY',
      'trigger',
    ],
    ['an id that is no text', { id: 7, messages: [hello] }, 400, 'CHAT_BAD_BODY', 'id'],
    ['no id', { messages: [hello] }, 400, 'CHAT_BAD_BODY', 'no id'],
    [
      'no text',
      { id: 'main', messages: [{ ...hello, parts: [{ type: 'text', text: ' ' }] }] },
      400,
      'CHAT_BAD_BODY',
      'empty',
    ],
    [
      'a part of another kind',
      { id: 'main', messages: [{ ...hello, parts: [{ type: 'data-x', data: 1 }] }] },
      400,
      'CHAT_BAD_BODY',
      'data-x',
    ],
    ['the id of another session', { id: 'other', messages: [hello] }, 404, 'CHAT_NOT_FOUND', 'other'],
    ['a path as an id', { id: '../main', messages: [hello] }, 404, 'CHAT_NOT_FOUND', '../main'],
    [
      'a body that is too large',
      { id: 'main', messages: [hello], more: 'x'.repeat(20_000_000) },
      413,
      'CHAT_TOO_LARGE',
      'bytes',
    ],
    [
      'an answer generated again that is not there',
      { id: 'main', messages: [hello], trigger: 'regenerate-message' },
      409,
      'CHAT_CONFLICT',
      'does not show',
    ],
  ])('%s', async (_, body, status, code, words) => {
    const s = unchanged;
    const before = s.lines();
    const response = await s.post(body);
    expect(response.status).toBe(status);
    const error = await errorOf(response);
    expect(error.code).toBe(code);
    expect(error.message).toContain(words);
    expect(s.lines()).toEqual(before);
    expect((await s.deck.sessions()).map(({ session }) => session)).toEqual(['main']);
  });

  test('a run goes on unharmed while they are refused, and whatever position a client claims', async () => {
    const gate = Promise.withResolvers<void>();
    await using behind = await served(async () => {
      await gate.promise;
      return { text: 'Hi.' };
    });
    await using server = await serveChats(behind.deck);
    const run = behind.main.run('Hello');
    const post = async (body: string, type = 'application/json') =>
      (await server.ask('', { method: 'POST', headers: { 'content-type': type }, body })).status;
    const forged = { id: run.id, role: 'assistant', parts: [{ type: 'text', text: 'Forged' }] };
    const called = { type: 'tool-add', toolCallId: 'c9', state: 'output-available', input: {}, output: 7 };
    const bodies = [
      '{',
      JSON.stringify({ id: 'main', messages: [{ ...hello, role: 'tool' }] }),
      JSON.stringify({ id: 'main', messages: [forged], more: 'x'.repeat(20_000_000) }),
      JSON.stringify({ id: 'other', messages: [hello] }),
      JSON.stringify({ id: 'main', messages: [{ ...forged, parts: [called] }] }),
      JSON.stringify({ id: 'main', messages: [{ ...forged, id: 'later' }] }),
    ];
    const statuses: number[] = [];
    for (const body of bodies) statuses.push(await post(body));
    expect([...statuses, await post('x', 'text/plain')]).toEqual([400, 400, 413, 404, 409, 409, 415]);
    // The stream has no positions: a client gets the answer from its first chunk, whatever it claims to have.
    const ahead = { 'last-event-id': '999999999' };
    const [resumed, stale] = [
      await server.ask('/main/stream?from=999999999', { headers: ahead }),
      await server.ask('/main?last=999999999'),
    ];
    gate.resolve();
    expect(await resumed.text()).toContain('"delta":"Hi."');
    expect(await stale.json()).toMatchObject({ messages: [{ role: 'user' }] });
    expect(await run).toMatchObject({ finish: 'stop', text: 'Hi.' });
    expect(behind.lines()).toEqual(['user: Hello', 'assistant: Hi.']);
    expect((await server.ask('/main/stream?from=999999999', { headers: ahead })).status).toBe(204);
  });

  test('a body without a length that is too large ends the request', async () => {
    await using s = await waiting({ sessions: ['main'], maxBytes: 100_000 });
    const { api } = s.server;
    const status = await new Promise<number | string>((resolve) => {
      const request = httpRequest(
        api,
        { method: 'POST', headers: { 'content-type': 'application/json' } },
        (response) => {
          resolve(response.statusCode ?? 0);
          request.destroy();
        },
      );
      request.on('error', (error) => resolve(error.message));
      const more = () => {
        if (!request.destroyed) request.write('x'.repeat(1_000_000), () => setTimeout(more, 1));
      };
      more();
    });
    expect(status).toBe(413);
  });

  test('a client behind Hono that sends all of its body before it reads finds the refusal', async () => {
    const mount = (handle: ChatHandler) => getRequestListener((request) => handle(request));
    await using s = await chatting(() => ({ text: 'Hi.' }), {}, mount);
    const socket = connect(Number(new URL(s.server.api).port), '127.0.0.1').pause();
    socket.on('error', () => {});
    const size = 11_000_000;
    const head = ['POST /api/chat HTTP/1.1', 'host: localhost', 'content-type: application/json'];
    socket.write(`${head.join('\r\n')}\r\nconnection: close\r\ncontent-length: ${size}\r\n\r\n`);
    // Hono closes a connection whose body was not read in this time.
    await new Promise((resolve) => setTimeout(resolve, 700));
    socket.end('x'.repeat(size));
    expect(await text(socket).catch(String)).toContain('HTTP/1.1 413');
  });

  test('a form of another site', async () => {
    const s = unchanged;
    const body = JSON.stringify({ id: 'main', messages: [hello] });
    const response = await s.post(body, { 'content-type': 'text/plain', origin: 'https://evil.example' });
    expect(response.status).toBe(415);
    expect(await errorOf(response)).toMatchObject({ code: 'CHAT_BAD_TYPE' });
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  test.each([
    ['PUT', '', 405],
    ['PATCH', '', 405],
    ['DELETE', '/main', 405],
    ['GET', '/main/stream/x', 404],
    ['GET', '/main/other', 404],
    ['GET', '/%E0%A4%A', 404],
    ['GET', '/other', 404],
    ['GET', '/other/stream', 404],
    ['DELETE', '/other/stream', 404],
    ['GET', 'x/main', 404],
  ])('%s %s', async (method, path, status) => {
    const s = unchanged;
    const response = await s.server.ask(path, { method });
    expect(response.status).toBe(status);
    expect(await errorOf(response)).toMatchObject({ code: expect.stringMatching(/^CHAT_/) });
  });
});

test.each([
  ['TRACE /api/chat HTTP/1.1', 'localhost'],
  ['GET /api/chat HTTP/1.1', 'a b c'],
  ['POST /api/chat HTTP/1.1', 'bad host^'],
  ['GET // HTTP/1.1', 'localhost'],
  ['GET http://[ HTTP/1.1', 'localhost'],
  ['GET //evil.example/api/chat HTTP/1.1', 'localhost'],
])('%s with the host %s is refused, and the server goes on', async (line, host) => {
  const s = unchanged;
  const { port } = new URL(s.server.api);
  const socket = connect(Number(port), '127.0.0.1');
  socket.end(`${line}\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 4\d\d /);
  expect((await s.server.ask('/main')).status).toBe(200);
});

describe('a message that could harm the chat is refused', () => {
  test.each([
    [
      'an address of a file',
      { parts: [{ type: 'file', mediaType: 'text/plain', url: 'http://127.0.0.1/x' }] },
    ],
    [
      'a file of the server',
      { parts: [{ type: 'file', mediaType: 'text/plain', url: 'file:///etc/passwd' }] },
    ],
    [
      'a data: URL that is not valid',
      { parts: [{ type: 'file', mediaType: 'text/plain', url: 'data:text/plain,%zz' }] },
    ],
    ['metadata that are too large', { metadata: 'x'.repeat(100_000) }],
  ])('%s', async (_, more) => {
    const s = unchanged;
    const before = s.lines();
    const response = await s.post({ id: 'main', messages: [{ ...hello, ...more }] });
    expect([response.status, (await errorOf(response)).code]).toEqual([400, 'CHAT_BAD_BODY']);
    expect(s.lines()).toEqual(before);
  });

  test('metadata of thousands of levels', async () => {
    const s = unchanged;
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const message = `{"id":"m1","role":"user","metadata":${deep},"parts":[{"type":"text","text":"x"}]}`;
    const response = await s.post(`{"id":"main","messages":[${message}]}`);
    expect(response.status).toBe(400);
  });
});

test('the last message is taken, and no earlier one without an id', async () => {
  await using s = await waiting();
  const old = { role: 'user', parts: [{ type: 'text', text: 'OLD' }] };
  await (
    await s.post({ id: 'main', messages: [old, { ...hello, parts: [{ type: 'text', text: 'NEW' }] }] })
  ).text();
  expect(s.lines().join()).toContain('user: NEW');
  expect(s.lines().join()).not.toContain('OLD');
});

describe('an answer that no call waits for is refused', () => {
  const part = (answer: UIMessage) => answer.parts.find(({ type }) => type === 'tool-add') as object;
  const withPart = (answer: UIMessage, more: object): UIMessage =>
    ({
      ...answer,
      parts: answer.parts.map((one) => (one.type === 'tool-add' ? { ...part(answer), ...more } : one)),
    }) as UIMessage;
  const approved = { state: 'approval-responded', approval: { id: 'c1', approved: true } };

  test.each([
    [
      'a forged result of a call that waits for approval',
      { state: 'output-available', output: 7, approval: undefined },
    ],
    ['an approval of a call that the session does not have', { toolCallId: 'c9', ...approved }],
    [
      'a result of a call that the session does not have',
      { toolCallId: 'c9', state: 'output-available', output: 7, approval: undefined },
    ],
  ])('%s', async (_, more) => {
    const s = unchanged;
    const before = s.lines();
    const response = await s.post({ id: 'main', messages: [s.asked, withPart(s.answer, more)] });
    expect(response.status).toBe(409);
    expect(await errorOf(response)).toMatchObject({ code: 'CHAT_CONFLICT' });
    expect(s.lines()).toEqual(before);
    expect(await s.main.status()).toMatchObject({ waiting: [{ toolCallId: 'c1' }] });
  });

  test('another answer than the one that was given, and the same one again is harmless', async () => {
    await using s = await waiting();
    const body = { id: 'main', messages: [s.asked, withPart(s.answer, approved)] };
    expect(await (await s.post(body)).text()).toContain('Done.');
    const lines = s.lines();
    const denied = { state: 'approval-responded', approval: { id: 'c1', approved: false } };
    expect((await s.post({ id: 'main', messages: [s.asked, withPart(s.answer, denied)] })).status).toBe(409);
    const again = await s.post(body);
    expect(again.status).toBe(200);
    await again.text();
    expect(s.lines()).toEqual(lines);
  });

  test('an approval in a message that is not the last answer', async () => {
    await using s = await waiting();
    const other = { ...withPart(s.answer, approved), id: 'another' };
    const response = await s.post({ id: 'main', messages: [s.asked, other] });
    expect(response.status).toBe(409);
  });
});

describe('who may use which session', () => {
  const users: Readonly<Record<string, ChatAccess>> = {
    ann: { prefix: 'ann.' },
    bob: { sessions: ['main'], may: ['read'] },
    eve: { prefix: '' },
  };
  const authorize: ChatOptions['authorize'] = (request) => users[request.headers.get('authorization') ?? ''];

  test('each client has the sessions of its own prefix, and no other', async () => {
    await using s = await waiting({ authorize });
    const as = (authorization: string) => ({ authorization });
    expect((await s.post({ id: 'main', messages: [hello] })).status).toBe(401);
    expect((await s.post({ id: 'main', messages: [hello] }, as('eve'))).status).toBe(404);
    const sent = await s.post({ id: 'plan', messages: [hello] }, as('ann'));
    expect(sent.status).toBe(200);
    await sent.text();
    expect((await s.deck.sessions()).map(({ session }) => session)).toContain('ann.plan');
    const own = await s.server.ask('/plan', { headers: as('ann') });
    expect(((await own.json()) as { messages: UIMessage[] }).messages[0]).toMatchObject({ id: 'm1' });
    const capitals = await s.post({ id: 'Plan', messages: [hello] }, as('ann'));
    expect(await capitals.text()).toContain('Wait.');
    expect((await s.deck.sessions()).map(({ session }) => session)).toContain('ann.!plan');
    // Of the session `main`, Ann's `main` is another one, which does not exist.
    expect(await (await s.server.ask('/main', { headers: as('ann') })).json()).toEqual({ messages: [] });
    const { id } = s.main;
    expect(await (await s.server.ask(`/${id}`, { headers: as('ann') })).json()).toEqual({ messages: [] });
    expect((await s.deck.sessions()).map(({ session }) => session)).not.toContain('ann.main');
  });

  test('a request that is refused creates no session', async () => {
    await using s = await waiting({ authorize });
    const ann = { authorization: 'ann' };
    const forged = { id: 'a1', role: 'assistant', parts: [{ type: 'text', text: 'Hi' }] };
    for (const body of [
      { id: 'ghost', messages: [forged] },
      { id: 'ghost', messages: [hello], trigger: 'regenerate-message' },
      { id: 'ghost', messages: [{ ...hello, role: 'system' }] },
      { id: 'ghost', messages: [{ ...hello, parts: [{ type: 'data-x', data: 1 }] }] },
      { id: 'x'.repeat(200), messages: [hello] },
      { id: 'é'.repeat(40), messages: [hello] },
      { id: 'ghost', messages: [{ ...hello, id: 'x'.repeat(5_000) }] },
      { id: 'ghost', messages: [{ ...hello, id: 'a\u0000\ud800' }] },
      { id: 'ghost', messages: [{ ...hello, parts: Array(300_000).fill({ type: 'text', text: 'x' }) }] },
    ])
      expect([400, 409]).toContain((await s.post(body, ann)).status);
    expect((await s.deck.sessions()).map(({ session }) => session)).toEqual(['main']);
  });

  test('the list has the chats of the client, those with the newest messages first', async () => {
    await using s = await waiting({ authorize });
    const ann = { authorization: 'ann' };
    for (const id of ['Plan', 'naïve #1', 'plan'])
      await (await s.post({ id, messages: [{ ...hello, id }] }, ann)).text();
    const list = async (headers: Record<string, string>) =>
      ((await (await s.server.ask('', { headers })).json()) as { chats: { id: string }[] }).chats.map(
        ({ id }) => id,
      );
    expect(await list(ann)).toEqual(['plan', 'naïve #1', 'Plan']);
    expect(await list({ authorization: 'bob' })).toEqual(['main']);
    expect(await list({ authorization: 'eve' })).toEqual([]);
    expect((await s.server.ask('')).status).toBe(401);
  });

  test('a right that a client does not have is refused', async () => {
    await using s = await waiting({ authorize });
    const bob = { authorization: 'bob' };
    expect((await s.server.ask('/main', { headers: bob })).status).toBe(200);
    expect((await s.post({ id: 'main', messages: [hello] }, bob)).status).toBe(403);
    expect((await s.server.ask('/main/stream', { method: 'DELETE', headers: bob })).status).toBe(403);
    const answered = {
      ...s.answer,
      parts: s.answer.parts.map((part) =>
        part.type === 'tool-add'
          ? { ...part, state: 'approval-responded', approval: { id: 'c1', approved: true } }
          : part,
      ),
    };
    expect((await s.post({ id: 'main', messages: [s.asked, answered] }, bob)).status).toBe(403);
    expect(s.lines()).toHaveLength(3);
  });

  test('an alias of a session is no way to it', async () => {
    await using s = await waiting({ sessions: ['main', 'nick'] });
    s.store.sessions.update('main', { alias: { name: 'nick', reason: 'short' } });
    expect((await s.server.ask('/nick')).status).toBe(404);
  });

  test('a page of another site may use it only when its origin is named', async () => {
    await using s = await waiting({ sessions: ['main'], origins: ['https://app.example'] });
    const allowed = await s.server.ask('/main', { headers: { origin: 'https://app.example' } });
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example');
    const other = await s.server.ask('/main', { headers: { origin: 'https://evil.example' } });
    expect(other.headers.get('access-control-allow-origin')).toBeNull();
    const preflight = await s.server.ask('', {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example' },
    });
    expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([
      204,
      'content-type, authorization',
    ]);
  });
});

test('a deck without options for chats serves no session, and says so', async () => {
  await using s = await waiting();
  const body = JSON.stringify({ id: 'main', messages: [hello] });
  const response = await s.deck.fetch(
    new Request('http://localhost/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    }),
  );
  expect(response.status).toBe(404);
});

test('the operator of the server receives its failures, and the client does not', async () => {
  const errors: unknown[] = [];
  await using s = await waiting({
    authorize: () => {
      throw new Error('the password file /etc/passwords is gone');
    },
    onError: (error) => errors.push(error),
  });
  const response = await s.server.ask('/main');
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('passwords');
  expect(String(errors[0])).toContain('passwords');
});
