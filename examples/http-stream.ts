/**
 * Streams runs over HTTP in the protocol of the AI SDK's `useChat`. A browser that disconnects does not stop its run, and
 * reads it again from the first chunk when it reconnects.
 *
 *     POST /chat/NAME     the text of a message     → the run, as server-sent events
 *     GET  /chat/NAME     the active run            → the same, or 204 without one
 *     DELETE /chat/NAME   stops the run
 *
 *     node examples/http-stream.ts
 *     curl -N localhost:3000/chat/main -d 'Hello'
 */
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { openDeck } from '@tapedeck/runtime';

const deck = await openDeck({
  home: process.env.TAPE_HOME ?? join(tmpdir(), `tapedeck-${process.pid}`),
  model: process.env.MODEL ?? `script:${import.meta.dirname}/answers/http-stream.json`,
});

async function answer(method: string, name: string, body: string): Promise<Response> {
  const session = await deck.session(name);
  if (method === 'DELETE') {
    await session.abort('stopped by the client');
    return new Response(null, { status: 204 });
  }
  const run = method === 'POST' ? session.run(body) : session.attach();
  return (await run?.toResponse()) ?? new Response(null, { status: 204 });
}

const server = createServer((request, response) => {
  const { method = 'GET', url = '/' } = request;
  const name = url.replace(/^\/chat\//, '');
  text(request)
    .then((body) => answer(method, name, body))
    .then(({ status, headers, body }) => {
      response.writeHead(status, Object.fromEntries(headers));
      if (body === null) response.end();
      else
        Readable.fromWeb(body)
          .on('error', () => response.destroy())
          .pipe(response);
    })
    .catch((error: unknown) => response.writeHead(500).end(String(error)));
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}/chat/main`);
});
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  void deck[Symbol.asyncDispose]();
});
