import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  apiKey,
  type ChatAnswer,
  type ChatRequest,
  type Failure,
  invalid,
  type Protocol,
  type RawAnswer,
} from './protocol.ts';

/** An HTTP server that speaks the protocol of a provider, streaming. */
export interface Provider extends AsyncDisposable {
  readonly url: string;
  /** The environment by which a model spec `openai-compatible/…` finds it. */
  readonly env: { readonly OPENAI_BASE_URL: string; readonly OPENAI_API_KEY: string };
  /** Every valid request, in the order in which they came. */
  readonly requests: readonly ChatRequest[];
  /** How many valid requests were under way at once, at most. */
  readonly most: () => number;
  /** The errors it answered to invalid requests. */
  readonly refusals: readonly string[];
}

/** Makes the answer to a valid request, which was sent at a time of `preciseNow`. */
export type Answers = (
  request: ChatRequest,
  index: number,
  sentAt: number,
) => ChatAnswer | Promise<ChatAnswer>;

/**
 * The header in which a client says when it sent a request: requests of several processes do not come in that order.
 */
export const sentAtHeader = 'x-test-sent-at';

/** Milliseconds since the epoch, with fractions: the same clock in every process. */
export const preciseNow = (): number => performance.timeOrigin + performance.now();

/** Starts a server that answers every valid request with what `answer` says, and every other one with an error. */
export async function startServer(protocol: Protocol, answer: Answers): Promise<Provider> {
  const requests: ChatRequest[] = [];
  const refusals: string[] = [];
  let now = 0;
  let most = 0;
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const sentAt = Number(request.headers[sentAtHeader] ?? preciseNow());
    const body: unknown = JSON.parse(await textOf(request));
    const fault = routeFault(protocol, request) ?? protocol.refuses(request.headers) ?? protocol.fault(body);
    if (fault !== undefined) {
      refusals.push(fault.message);
      return refuse(response, protocol, fault);
    }
    requests.push(body as ChatRequest);
    now += 1;
    most = Math.max(most, now);
    response.once('close', () => {
      now -= 1;
    });
    await send(response, protocol, {
      request: body as ChatRequest,
      answer: await answer(body as ChatRequest, requests.length - 1, sentAt),
    });
  };
  // The client alone closes idle connections: of a process that a busy machine holds up, the next request would meet
  // one that closes, and be retried.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    handle(request, response).catch((error: unknown) => refuse(response, protocol, invalid(String(error))));
  });
  const url = `http://127.0.0.1:${await listen(server)}/v1`;
  return {
    url,
    env: { OPENAI_BASE_URL: url, OPENAI_API_KEY: apiKey },
    requests,
    refusals,
    most: () => most,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function routeFault({ path }: Protocol, { method, url }: IncomingMessage): Failure | undefined {
  return method === 'POST' && url === path ? undefined : invalid(`no such route: ${method} ${url}`);
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function refuse(response: ServerResponse, protocol: Protocol, failure: Failure): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, retryAfterMs = 1, retryAfter } = failure;
  // Clients wait between tries; a test need not.
  const wait =
    retryAfter !== undefined
      ? { 'retry-after': retryAfter }
      : {
          'retry-after-ms': String(retryAfterMs),
          'retry-after': String(Math.ceil(retryAfterMs / 1000)),
        };
  response.writeHead(status, { 'content-type': 'application/json', ...wait });
  response.end(JSON.stringify(protocol.errorBody(failure)));
}

async function send(
  response: ServerResponse,
  protocol: Protocol,
  { request, answer }: { request: ChatRequest; answer: ChatAnswer },
): Promise<void> {
  if ('raw' in answer) return await sendRaw(response, answer);
  if ('status' in answer) return refuse(response, protocol, answer);
  if ('overflow' in answer) return refuse(response, protocol, protocol.overflow);
  if (answer.delayMs !== undefined) await sleep(answer.delayMs);
  if (request.stream !== true && protocol.whole !== undefined) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(protocol.whole(request, answer)));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const events = [...protocol.begin(request, answer)];
  for (const [index, event] of events.entries()) {
    if (index === events.length >> 1) await answer.half;
    response.write(event);
    await sleep(answer.pauseMs ?? 1);
  }
  if (answer.hang) return;
  if (answer.cut) {
    await sleep(20);
    response.destroy();
    return;
  }
  response.end(protocol.end(request, answer).join(''));
}

async function sendRaw(
  response: ServerResponse,
  { raw, code = 200, headers, cut }: RawAnswer,
): Promise<void> {
  if (cut === 'before') {
    response.destroy();
    return;
  }
  response.writeHead(code, { 'content-type': 'text/event-stream', ...headers });
  response.flushHeaders();
  for (const bytes of raw) if (!response.write(bytes)) await once(response, 'drain');
  if (cut === undefined) response.end();
  else setTimeout(() => response.destroy(), 20);
}
