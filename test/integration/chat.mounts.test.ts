import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { type ChatHandler, nodeListener } from '@tapedeck/runtime';
import { stoppingFetch } from '@tapedeck/runtime/chat-client';
import { DefaultChatTransport, tool } from 'ai';
import express from 'express';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { TestChat } from '../support/chat.ts';
import { chatting, expectSame, shape } from '../support/chatting.ts';
import { isAfterTools } from '../support/provider.ts';

/** The handler in each framework, as its users mount it. */
const mounts: Readonly<Record<string, (handle: ChatHandler) => RequestListener>> = {
  'node:http': nodeListener,
  Hono: (handle) => {
    const app = new Hono();
    app.all('/api/chat/*', (c) => handle(c.req.raw));
    return getRequestListener(app.fetch);
  },
  'Express, before its parser of bodies': (handle) => {
    const app = express();
    app.use('/api/chat', nodeListener(handle));
    app.use(express.json());
    return app;
  },
  'Express, behind its parser of bodies': (handle) => {
    const app = express();
    app.use(express.json());
    app.use('/api/chat', nodeListener(handle));
    return app;
  },
  // `app/api/chat/[[...path]]/route.ts` exports the handler as a function of each method, which gets a `Request`.
  Next: (handle) => {
    const route: Readonly<Record<string, (request: Request, context: object) => Promise<Response>>> = {
      GET: handle,
      POST: handle,
      DELETE: handle,
    };
    return nodeListener(async (request) => {
      const method = route[request.method];
      return (
        (await method?.(request, { params: Promise.resolve({}) })) ?? new Response(null, { status: 405 })
      );
    });
  },
};

const add = tool({
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  needsApproval: true,
  execute: ({ a, b }) => a + b,
});

test.each(Object.entries(mounts))(
  'in %s a chat streams, is approved, is resumed after a lost connection, and stopped',
  async (_, mount) => {
    await using s = await chatting(
      (request, index) => {
        if (isAfterTools(request)) return { text: 'It is 3.' };
        if (index === 0) return { calls: [{ id: 'c1', name: 'add', arguments: { a: 1, b: 2 } }] };
        return index === 2
          ? { text: ['One ', 'two ', 'three.'], pauseMs: 100 }
          : { text: ['I '], hang: true };
      },
      { tools: { add } },
      mount,
    );
    const { api } = s.server;
    const chat = s.server.chat('main');
    await chat.sendMessage({ text: '1 + 2?' });
    await chat.addToolApprovalResponse({ id: 'c1', approved: true });
    await chat.sendMessage();
    await expectSame(s, chat);
    expect(shape(chat.lastMessage)).toContain('tool-add output-available');

    const leaving = new AbortController();
    const response = await s.server.ask('/main', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        messages: [{ id: 'm2', role: 'user', parts: [{ type: 'text', text: 'Count' }] }],
      }),
      signal: leaving.signal,
    });
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    await response.body?.getReader().read();
    leaving.abort();
    const again = s.server.chat('main', { messages: (await s.main.uiMessages()).slice(0, 3) });
    await again.resumeStream();
    await expectSame(s, again);
    expect(JSON.stringify(again.lastMessage)).toContain('One two three.');

    const stopped = new TestChat({
      id: 'main',
      messages: again.plain,
      transport: new DefaultChatTransport({ api, fetch: stoppingFetch() }),
    });
    const sending = stopped.sendMessage({ text: 'Go on' });
    await expect.poll(() => JSON.stringify(stopped.lastMessage)).toContain('I ');
    await stopped.stop();
    await sending;
    await s.main.idle();
    expect(s.lines().at(-1)).toBe('event run/aborted');

    expect((await s.server.ask('/main/stream')).status).toBe(204);
    expect(await (await s.server.ask('')).json()).toMatchObject({ chats: [{ id: 'main' }] });
    expect((await s.server.ask('/other')).status).toBe(404);
  },
);
