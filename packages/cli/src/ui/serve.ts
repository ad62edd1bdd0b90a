/**
 * The page of sessions in a browser, and as one file. `serve.ts` is the server of `tape ui`: Node's own, for this machine and
 * one browser. `guard.ts` says what is refused, before anything is read; `token.ts` has the secret of the address and the
 * cookie for which it is exchanged; `headers.ts` what a browser may do with an answer. `query.ts` reads a query, `routes.ts`
 * answers it with the functions of `page`, `events.ts` sends what changes, `assets.ts` has the files of the page, `crowd.ts`
 * counts connections, `in-turn.ts` has the requests of each wait for one another, and `answer.ts` brings these together for a
 * request. `shown-home.ts` keeps the home open, `check-aside.ts` checks what is large in another process, what that says is read
 * in a thread by `worst-findings.ts`, `until-over.ts` waits for the end of the terminal, and `browser.ts` opens a browser:
 * `show.ts` does all that for the verb. `export-html.ts` exports the page with its data inside, which `html-file.ts` writes.
 * Imports `page`, `session`, `context` and what lies below.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ListenError } from '../errors/kinds.ts';
import { systemFault } from '../errors/system-fault.ts';
import { type Answering, answerTo, entering } from './answer.ts';
import { connectionsMax, crowdOf } from './crowd.ts';
import { inTurn } from './in-turn.ts';
import { refuseSocket } from './refuse.ts';
import { makeEntrance } from './token.ts';

/** What a client that is slow, or wants too much, is allowed: bytes, and milliseconds. */
const limits = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
} as const;

/** How long a connection may take nothing of an answer, in milliseconds. Node.js looks twice before it ends one. */
const stalledMs = 30_000;

/** A server that listens. */
export interface Serving extends AsyncDisposable {
  readonly port: number;
  /** The path that lets in the browser that opens it first. */
  readonly path: string;
}

/**
 * Listens on this machine alone, on a port or on a free one.
 * @throws ListenError
 */
export async function serve(
  port: number,
  answering: Omit<Answering, 'port' | 'entrance' | 'streams' | 'crowd'>,
): Promise<Serving> {
  const server = createServer(limits);
  server.timeout = stalledMs;
  // Else the headers behind so many are not looked at. Their bytes are bounded.
  server.maxHeadersCount = 0;
  const crowd = crowdOf(server);
  await listen(server, port);
  const { port: own } = server.address() as AddressInfo;
  const entrance = makeEntrance(own);
  const answer = inTurn(answerTo({ ...answering, port: own, entrance, crowd, streams: new Set() }));
  server.on('request', answer);
  // Without listeners, Node.js would agree to send a body, or answer without the headers.
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
  server.on('upgrade', (_request, socket) => refuseSocket(socket, 400));
  server.on('connect', (_request, socket) => refuseSocket(socket, 405));
  return {
    port: own,
    path: `${entering}${entrance.token}`,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((done) => server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        new ListenError(
          `cannot listen on port ${port}: ${cause.code === 'EADDRINUSE' ? 'another program does' : systemFault(cause)}`,
          { data: { port }, cause },
        ),
      ),
    );
    server.listen({ host: '127.0.0.1', port, backlog: connectionsMax }, resolve);
  });
  server.removeAllListeners('error');
}
