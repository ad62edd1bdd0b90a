/**
 * The endpoint of a deck for the AI SDK's chats. `chat.ts` routes requests, `access.ts` decides on their sessions,
 * `body.ts` reads what a chat sends, `send.ts` does it, `streams.ts` makes the answers, `item.ts` those to what waits in
 * the inbox, `elsewhere.ts` those that another process writes, `left.ts` lets those go on whose process has died, `below.ts`
 * makes those that wait for children that work, of which `live-children.ts` says how they do. `sse.ts` writes them as server-sent events, `node.ts` serves them with `node:http`.
 * Imports `session` and what lies below.
 */
import type { TapeStore } from '@tapedeck/tape';
import type { Awaitable } from '@tapedeck/tape/store';
import { messageOf, SessionError } from '../errors.ts';
import { assertFields } from '../fields.ts';
import { assertSpec } from '../model/name.ts';
import { inputFault } from '../session/check-input.ts';
import { type StartOptions, startFields } from '../session/options.ts';
import type { Chunk } from '../stream/chunks.ts';
import {
  type Authorize,
  assertMay,
  type ChatAccess,
  type ChatDeck,
  chatsOf,
  nameOf,
  sessionOf,
} from './access.ts';
import { discardBody, readBody } from './body.ts';
import { ChatError, failureResponse, type OnChatError } from './errors.ts';
import type { GoOn } from './left.ts';
import { eventHeaders, eventStream, textHeaders, textStream } from './sse.ts';
import type { ChatPlace } from './streams.ts';

/** Options of `chatHandler`. */
export interface ChatOptions {
  /** The path that the handler serves (default `/api/chat`, that of the AI SDK). */
  readonly path?: string;
  /** The names of sessions that every client may use. */
  readonly sessions?: readonly string[];
  /** Decides which sessions the sender of a request may use, in place of `sessions`. */
  readonly authorize?: Authorize;
  /** The largest body of a request, in bytes (default 10 MiB). Files are part of it. */
  readonly maxBytes?: number;
  /** Origins of other sites whose pages may use the endpoint. Default: none. */
  readonly origins?: readonly string[];
  /**
   * Options of the runs that requests start: the model, tools, instructions, `maxSteps`, a `signal`. A function decides
   * for each request, from what the client sent beside its messages; nothing of that counts by itself.
   */
  readonly run?:
    | StartOptions
    | ((request: Request, chat: ChatRequest) => Awaitable<StartOptions | undefined>);
  /**
   * Whether the answer of a process that has died goes on in this one when a client reads it, as with `deck.recover`.
   * Default: on a home on a server, which other replicas serve.
   */
  readonly recovers?: boolean;
  /**
   * Called with each failure of the server, and with that of a model or a tool that ends an answer. The client learns the
   * text that it returns; without one, only that the request or the answer failed.
   */
  readonly onError?: OnChatError;
}

/** What a client asks a session for. */
export interface ChatRequest {
  /** The name of the session. */
  readonly session: string;
  /** The body: what `sendMessage(message, { body })` adds is in it. A client can send anything. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** Answers the requests of chats. */
export type ChatHandler = (request: Request) => Promise<Response>;

const maxBytesDefault = 10 * 1024 * 1024;

/**
 * Makes the handler of a path, which serves sessions to the AI SDK's `useChat`:
 *
 * - `POST PATH` sends the last message, edits or regenerates one, or answers calls, and streams the answer
 * - `GET PATH` lists the chats, newest messages first
 * - `GET PATH/ID` gives the messages of a chat
 * - `GET PATH/ID/stream` streams the current answer from its first chunk, then live; 204 when the chat is idle
 * - `DELETE PATH/ID/stream` stops the current run; a closed connection does not
 *
 * @example
 * ```ts
 * import { chatHandler, openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const handle = chatHandler(deck, { sessions: ['main'] });
 * const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Plan the release.' }] };
 * const response = await handle(
 *   new Request('http://localhost/api/chat', {
 *     method: 'POST',
 *     headers: { 'content-type': 'application/json' },
 *     body: JSON.stringify({ id: 'main', messages: [message] }),
 *   }),
 * );
 * console.log(response.status, (await response.text()).includes('"delta":"Test, "')); // 200 true
 * ```
 */
export function chatHandler(
  deck: ChatDeck & { readonly store: TapeStore },
  options: ChatOptions = {},
): ChatHandler {
  const path = (options.path ?? '/api/chat').replace(/\/+$/, '');
  let goOn: Promise<GoOn> | undefined;
  const left: GoOn = async (place) => {
    if (!(options.recovers ?? deck.store.leaseMs !== undefined)) return false;
    goOn ??= import('./left.ts').then(({ goingOn }) => goingOn(async (id) => await deck.recover(id)));
    return await (await goOn)(place);
  };
  return async (request) => {
    const allowed = crossOrigin(request, options.origins);
    let response: Response;
    try {
      response = await route(deck, request, { ...options, path, goOn: left });
    } catch (error) {
      response = failureResponse(error, options.onError);
      await discardBody(request);
    }
    for (const [name, value] of allowed) response.headers.set(name, value);
    return response;
  };
}

async function route(
  deck: ChatDeck & { readonly store: TapeStore },
  request: Request,
  { path, goOn, ...options }: ChatOptions & { readonly path: string; readonly goOn: GoOn },
): Promise<Response> {
  const { method } = request;
  const url = new URL(request.url);
  const [id, end, ...more] = segmentsOf(url.pathname, path);
  const isStream = end === 'stream';
  if (more.length > 0 || (end !== undefined && !isStream)) throw notFound(url.pathname);
  if (method === 'OPTIONS') return new Response(null, { status: 204 });
  const methods = isStream ? ['GET', 'DELETE'] : ['GET', 'POST'];
  if (!methods.includes(method))
    throw new ChatError('CHAT_BAD_METHOD', `cannot ${method} ${url.pathname}: use ${methods.join(' or ')}`);
  const access = await accessOf(request, options);
  if (method === 'POST') {
    const body = await readBody(request, options.maxBytes ?? maxBytesDefault);
    const { assertBegins, take } = await import('./send.ts');
    const chat = id ?? body.id;
    if (chat === undefined) throw new ChatError('CHAT_BAD_BODY', 'cannot read the body: it has no id');
    const found = await sessionOf(deck, access, { id: chat, creates: false });
    if (found === undefined) {
      assertMay(access, 'send');
      assertBegins(body);
    }
    const run = await runOptions(
      request,
      { session: nameOf(access, chat) ?? chat, body: body.given },
      options,
    );
    const session = found ?? (await sessionOf(deck, access, { id: chat, creates: true }));
    if (session === undefined) throw notFound(chat);
    const chunks = await take({ store: deck.store, session, run }, access, body);
    return await streamed(chunks, url.searchParams.get('format'), options);
  }
  if (id === undefined) {
    assertMay(access, 'read');
    return Response.json({ chats: await chatsOf(deck.store, access) });
  }
  const session = await sessionOf(deck, access, { id, creates: false });
  if (method === 'DELETE') {
    assertMay(access, 'stop');
    if (session !== undefined) await stop({ store: deck.store, session });
    return new Response(null, { status: 204 });
  }
  assertMay(access, 'read');
  if (!isStream) {
    const last = lastOf(url.searchParams.get('last'));
    return Response.json({ messages: (await session?.uiMessages(last)) ?? [] });
  }
  const chunks = session === undefined ? undefined : await current({ store: deck.store, session }, goOn);
  return chunks === undefined
    ? new Response(null, { status: 204 })
    : await streamed(chunks, url.searchParams.get('format'), options);
}

/** How many turns a request asks for; without a number, all. */
function lastOf(text: string | null): { readonly last?: number } {
  if (text === null) return {};
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new ChatError(
      'CHAT_BAD_BODY',
      `cannot read the last '${text}' turns: it must be a whole number from 1`,
    );
  return { last: Number(text) };
}

/** Stops the run of a session or, when it waits for children, their runs and the one that would follow. */
async function stop(place: ChatPlace): Promise<void> {
  const reason = 'stopped by the client';
  const { isWritten } = await import('./streams.ts');
  const isRun = place.session.attach() !== undefined || (await isWritten(place));
  if (isRun) await place.session.abort(reason);
  else await (await import('./below.ts')).stopBelow(place, reason);
}

/** The stream of the current answer, from its first chunk; undefined when neither the session nor a child of it works. */
async function current(place: ChatPlace, goOn: GoOn): Promise<AsyncIterable<Chunk> | undefined> {
  const { isWritten, runStream } = await import('./streams.ts');
  const goesOn = place.session.attach() !== undefined || (await isWritten(place)) || (await goOn(place));
  const run = place.session.attach();
  if (run !== undefined) return runStream(place, run, { whole: true });
  if (goesOn) return (await import('./elsewhere.ts')).otherStream(place, goOn);
  const { belowStream, turnAtWork } = await import('./below.ts');
  const turn = await turnAtWork(place);
  return turn === undefined ? undefined : belowStream(place, turn);
}

/** Server-sent events of the UI message stream protocol or, with the format `text`, the text of the answer alone. */
async function streamed(
  chunks: AsyncIterable<Chunk>,
  format: string | null,
  { onError = () => {} }: Pick<ChatOptions, 'onError'>,
): Promise<Response> {
  if (format !== 'text') return new Response(eventStream(chunks, onError), { headers: eventHeaders });
  return new Response(await textStream(chunks, onError), { headers: textHeaders });
}

/**
 * The options of the run of a request.
 * @throws SESSION_BAD_CONFIG for what is no option of a run: code gives them, and not the client
 */
async function runOptions(
  request: Request,
  chat: ChatRequest,
  { run = {} }: Pick<ChatOptions, 'run'>,
): Promise<StartOptions> {
  const given = (typeof run === 'function' ? await run(request, chat) : run) ?? {};
  const act = `run '${chat.session}' for a chat`;
  const { model, settings, tools } = given;
  try {
    assertFields(given, startFields, act);
    if (model !== undefined) assertSpec(model);
    const fault = inputFault(chat.session, { settings, tools });
    if (fault !== undefined) throw fault;
  } catch (cause) {
    throw new SessionError('SESSION_BAD_CONFIG', messageOf(cause), { cause });
  }
  return given;
}

async function accessOf(request: Request, { authorize, sessions }: ChatOptions): Promise<ChatAccess> {
  const access = authorize === undefined ? { sessions: sessions ?? [] } : await authorize(request);
  if (access !== undefined) return access;
  throw new ChatError('CHAT_UNKNOWN_USER', 'cannot use this endpoint: the sender is not known');
}

/** The segments of a path after that of the handler. */
function segmentsOf(pathname: string, path: string): readonly string[] {
  if (pathname !== path && !pathname.startsWith(`${path}/`)) throw notFound(pathname);
  const rest = pathname.slice(path.length).replace(/^\//, '');
  if (rest === '') return [];
  try {
    return rest.split('/').map(decodeURIComponent);
  } catch (cause) {
    throw new ChatError('CHAT_NOT_FOUND', `there is no '${pathname}'`, { cause });
  }
}

function notFound(what: string): ChatError {
  return new ChatError('CHAT_NOT_FOUND', `there is no '${what}'`, { data: { what } });
}

/** The headers by which a browser lets a page of another site use the response. */
function crossOrigin(
  request: Request,
  origins: readonly string[] = [],
): readonly (readonly [string, string])[] {
  const origin = request.headers.get('origin');
  if (origin === null || !origins.includes(origin)) return [];
  return [
    ['access-control-allow-origin', origin],
    ['access-control-allow-credentials', 'true'],
    ['access-control-allow-methods', 'GET, POST, DELETE'],
    ['access-control-allow-headers', 'content-type, authorization'],
    ['vary', 'origin'],
  ];
}
