import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ChatHandler } from './chat.ts';
import { ChatError, failureResponse } from './errors.ts';

/**
 * The handler as a listener of `node:http`, which Express takes too. Behind a parser of bodies it takes what that has read,
 * whose limits then count, too: that of Express is 100 kB by default.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { chatHandler, nodeListener, openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const server = createServer(nodeListener(chatHandler(deck, { sessions: ['main'] })));
 * console.log(server.listenerCount('request')); // 1
 * ```
 */
export function nodeListener(
  handle: ChatHandler,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    const answer = await answerTo(handle, request);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body === null) {
      response.end();
      return;
    }
    response.flushHeaders();
    // A client that goes away ends the pipeline, and not the run.
    await pipeline(Readable.fromWeb(answer.body), response).catch(() => {});
  };
}

async function answerTo(handle: ChatHandler, request: IncomingMessage): Promise<Response> {
  try {
    return await handle(webRequest(request));
  } catch (error) {
    // What no `Request` can be made of, such as a method that it forbids or an address that it cannot parse.
    if (!(error instanceof TypeError)) throw error;
    return failureResponse(new ChatError('CHAT_BAD_BODY', `cannot read the request: ${error.message}`));
  }
}

function webRequest(request: IncomingMessage): Request {
  const { method = 'GET', headers, url = '/' } = request;
  // Express removes the path that a listener is mounted at from `url`. Its parsers leave what they have read in `body`.
  const { originalUrl, body } = request as { readonly originalUrl?: string; readonly body?: unknown };
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const fields = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value ?? '']).map((one): [string, string] => [name, one]),
  );
  return new Request(addressOf(headers.host ?? 'localhost', originalUrl ?? url), {
    method,
    headers: fields,
    ...(hasBody &&
      (request.readableDidRead
        ? { body: textOf(body) }
        : { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' })),
  });
}

/** What a parser of bodies has made of one, as JSON again. */
function textOf(body: unknown): string | Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return body;
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body ?? null);
}

/** The address of a request. Its path is no part of an address: of `//other/api` the host is not `other`. */
function addressOf(host: string, target: string): URL {
  if (!target.startsWith('/')) throw new TypeError(`'${target}' is not a path`);
  const [path = '/', ...query] = target.split('?');
  const address = new URL(`http://${host}`);
  address.pathname = path;
  address.search = query.join('?');
  return address;
}
