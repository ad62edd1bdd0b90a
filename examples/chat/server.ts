/**
 * A chat in a browser: a list of sessions, streaming, approvals, and children at work. The page is one file without a
 * build; an application would use `useChat` of the AI SDK with the same endpoint.
 *
 *     node examples/chat/server.ts        then open http://127.0.0.1:3000
 *
 * Offline a script answers. `MODEL=openai-compatible/NAME` and its key use a model.
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chatHandler, delegateTool, nodeListener, openDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { z } from 'zod';

const publish = tool({
  description: 'Publish a version',
  inputSchema: z.object({ version: z.string() }),
  needsApproval: true,
  execute: ({ version }) => `${version} is out`,
});
const deck = await openDeck({
  home: process.env.TAPE_HOME ?? join(tmpdir(), `tapedeck-chat-${process.pid}`),
  model: process.env.MODEL ?? `script:${import.meta.dirname}/../answers/chat.json`,
  tools: { publish, delegate: delegateTool() },
});
// An application finds the user in a cookie or a header. Each has the sessions of one prefix.
const handle = chatHandler(deck, { authorize: () => ({ prefix: 'chat.' }), onError: console.error });
const chats = nodeListener(handle);

const server = createServer(async (request, response) => {
  if (request.url?.startsWith('/api/chat') === true) return await chats(request, response);
  if (request.url === '/chat-client.js') {
    const client = await readFile(new URL(import.meta.resolve('@tapedeck/runtime/chat-client')));
    return response.writeHead(200, { 'content-type': 'text/javascript; charset=utf-8' }).end(client);
  }
  const page = await readFile(join(import.meta.dirname, 'index.html'));
  return response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}`);
});
// What a process left that was killed while it answered.
await deck.recover();
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  void deck[Symbol.asyncDispose]();
});
