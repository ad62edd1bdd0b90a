import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { describeError } from '../errors/describe.ts';
import { exit } from '../exit.ts';
import { readable } from '../page/page.ts';
import type { Asset } from './assets.ts';
import { type Crowd, connectionsMax } from './crowd.ts';
import { homeOf, sendEvents } from './events.ts';
import { guard } from './guard.ts';
import { headers } from './headers.ts';
import { optional, readQuery, text } from './query.ts';
import { Refused } from './refuse.ts';
import { routeOf } from './routes.ts';
import type { ShownHome } from './shown-home.ts';
import type { Entrance } from './token.ts';

/** What answers come from. */
export interface Answering {
  readonly port: number;
  readonly entrance: Entrance;
  readonly assets: ReadonlyMap<string, Asset>;
  readonly home: ShownHome;
  /** What follows the home now. */
  readonly streams: Set<object>;
  /** Connections beyond those that are answered. */
  readonly crowd: Crowd;
  /** The directory of the home, which no answer names. */
  readonly dir: string;
  /** A text with commands, as its reader can type them from anywhere. */
  readonly inHome: (text: string) => string;
  /** A text without the secrets that this process knows. */
  readonly masked: (text: string) => string;
  /** Says what went wrong in the server itself. */
  readonly report: (error: unknown) => void;
}

/** How the path begins that lets a browser in. */
export const entering = '/enter/';
const asking = '/api/';

/** Answers each request, whatever goes wrong. */
export function answerTo(at: Answering): RequestListener {
  return (request, response) => {
    response.on('error', () => {});
    answer(request, response, at).catch((error: unknown) => refuse(request, response, refusalOf(error, at)));
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, at: Answering): Promise<void> {
  const { method = '', url = '', headersDistinct } = request;
  guard({ method, url, headers: headersDistinct }, at.port);
  if (at.crowd.isBeyond(request.socket)) throw crowded;
  const [path = '', query = ''] = halves(url);
  const isIn = at.entrance.admits(request.headers.cookie);
  if (path.startsWith(entering)) {
    const cookie = isIn ? undefined : at.entrance.enter(path.slice(entering.length));
    if (!isIn && cookie === undefined) throw wrongAddress;
    send(response, 303, { Location: '/', ...(cookie !== undefined && { 'Set-Cookie': cookie }) });
    return;
  }
  if (!isIn) throw notIn;
  if (path.startsWith(asking)) {
    await answerQuestion(path.slice(asking.length), query, { request, response, at });
    return;
  }
  const asset = at.assets.get(path);
  if (asset === undefined || query !== '') throw notThere;
  send(response, 200, { 'Content-Type': asset.type }, asset.bytes);
}

async function answerQuestion(
  name: string,
  query: string,
  {
    request,
    response,
    at,
  }: { readonly request: IncomingMessage; readonly response: ServerResponse; readonly at: Answering },
): Promise<void> {
  if (name === 'events') {
    const { after = '' } = readQuery(query, { after: optional(text) });
    if (at.streams.size >= streamsMax) throw busy;
    const stream = {};
    at.streams.add(stream);
    response.once('close', () => at.streams.delete(stream));
    // A browser that connects again says where it was, and repeats the address.
    const last = request.headers['last-event-id'];
    await at.home.read(async (opened) => {
      response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream; charset=utf-8' });
      const from = typeof last === 'string' && last !== '' ? last : after;
      await sendEvents(opened, { response, after: from, masked: at.masked });
    });
    return;
  }
  const route = routeOf(name);
  if (route === undefined) throw notThere;
  const { socket } = request;
  const { timeout = 0 } = socket;
  // A client that waits is not one that takes nothing: the check of a large home is longer than that is allowed to be.
  socket.setTimeout(0);
  const found = await at.home
    .read(async (opened) => await route({ ...opened.page, home: async () => await homeOf(opened) }, query))
    .finally(() => socket.setTimeout(timeout));
  sendJson(response, 200, readable(at.masked(JSON.stringify(found))));
}

function halves(url: string): readonly [path: string, query: string] {
  const at = url.indexOf('?');
  return at === -1 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
}

/** Streams of events at a time: each looks at the home many times a second. */
const streamsMax = 64;

const busy = new Refused(503, {
  code: 'UI_BUSY',
  message: `cannot follow: ${streamsMax} pages do`,
  hint: 'close some of them',
});
const crowded = new Refused(503, {
  code: 'UI_BUSY',
  message: `cannot answer: there are ${connectionsMax} connections`,
  hint: 'close some of them',
});
const wrongAddress = new Refused(403, {
  code: 'UI_BAD_TOKEN',
  message: 'cannot enter: the address was opened before, or is of another tape ui',
  hint: 'start tape ui again, and open the address that it prints',
});
const notIn = new Refused(401, {
  code: 'UI_NOT_ENTERED',
  message: 'cannot answer: this browser has not opened the address that tape ui printed',
  hint: 'open it, or start tape ui again if it was opened before',
});
const notThere = new Refused(404, {
  code: 'UI_NOT_FOUND',
  message: 'cannot answer: there is no such address',
});

/** What a client learns of an error. An unknown one goes to the terminal alone. */
function refusalOf(error: unknown, at: Answering): Refused {
  if (error instanceof Refused) return error;
  const { code, message, hint, exit: ended } = describeError(error);
  if (code === 'CLI_FAILED') {
    at.report(error);
    return new Refused(500, {
      code: 'UI_FAILED',
      message: 'cannot answer: the server failed; its terminal says why',
    });
  }
  const status = { [exit.usage]: 400, [exit.notFound]: 404, [exit.conflict]: 409 }[ended] ?? 500;
  const plain = (said: string) => said.replaceAll(`'${at.dir}'`, 'the home').replaceAll(at.dir, 'the home');
  return new Refused(status, {
    code,
    message: plain(message),
    // Without its directory, a command would be another one.
    ...(hint !== undefined && !hint.includes(at.dir) && { hint: at.inHome(hint) }),
  });
}

function refuse(request: IncomingMessage, response: ServerResponse, refused: Refused): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, code, message, hint } = refused;
  // What a client sends behind a request that is no request of a page is not read.
  if (status !== 404 && status !== 401) response.shouldKeepAlive = false;
  if (status === 405) response.setHeader('Allow', 'GET');
  if (status === 503) response.setHeader('Retry-After', '5');
  if (request.url?.startsWith(asking) === true) {
    const json = JSON.stringify({ code, message, ...(hint !== undefined && { hint }) });
    sendJson(response, status, json);
  } else {
    const said = `${message}${hint === undefined ? '' : `\n${hint}`}\n`;
    send(response, status, { 'Content-Type': 'text/plain; charset=utf-8' }, Buffer.from(said));
  }
}

function sendJson(response: ServerResponse, status: number, json: string): void {
  send(response, status, { 'Content-Type': 'application/json; charset=utf-8' }, Buffer.from(json));
}

function send(
  response: ServerResponse,
  status: number,
  own: Readonly<Record<string, string>>,
  bytes: Buffer = Buffer.alloc(0),
): void {
  response.writeHead(status, { ...headers, ...own, 'Content-Length': String(bytes.length) });
  response.end(bytes);
}
