/**
 * Serves a session to the `useChat` of the AI SDK. A browser that disconnects does not stop its run, and reads it again
 * from the first chunk when it reconnects.
 *
 *     node examples/http-stream.ts
 *     curl -N localhost:3000/api/chat -H 'content-type: application/json' \
 *       -d '{"id":"main","message":{"id":"1","role":"user","parts":[{"type":"text","text":"Hello"}]}}'
 */
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chatHandler, nodeListener, openDeck } from '@tapedeck/runtime';

const deck = await openDeck({
  home: process.env.TAPE_HOME ?? join(tmpdir(), `tapedeck-${process.pid}`),
  model: process.env.MODEL ?? `script:${import.meta.dirname}/answers/http-stream.json`,
});
const handle = chatHandler(deck, { sessions: ['main'], onError: console.error });
const server = createServer(nodeListener(handle));
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}/api/chat`);
});
// What a process left that was killed while it answered.
await deck.recover();
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  void deck[Symbol.asyncDispose]();
});
