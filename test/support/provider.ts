import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject, type Json, type JsonObject } from '@tapedeck/tape';

/** A chat message as the server was sent it. */
interface ChatMessage extends JsonObject {
  readonly role: string;
}

/** A request as the server was sent it, after it was found valid. */
export interface ChatRequest extends JsonObject {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
}

interface ChatCall {
  readonly id?: string;
  readonly name: string;
  /** A text is sent as it is, JSON or not. */
  readonly arguments: Json;
}

/** What the server answers. */
export type ChatAnswer =
  | {
      /** Thoughts before the answer. */
      readonly reasoning?: string;
      /** Sent as one chunk for each text. */
      readonly text?: string | readonly string[];
      readonly calls?: readonly ChatCall[];
      readonly finish?: string;
      /** Prompt and completion tokens. */
      readonly usage?: readonly [number, number];
      readonly delayMs?: number;
      /** Between two texts (default 1). */
      readonly pauseMs?: number;
      /** Closes the connection after the texts, before the answer is finished. */
      readonly cut?: true;
      /** Sends the texts, and then nothing more. */
      readonly hang?: true;
    }
  | {
      readonly status: number;
      readonly message: string;
      /** How long clients are told to wait before they ask again. */
      readonly retryAfterMs?: number;
    };

/** An HTTP server that speaks the chat completions protocol, streaming. */
export interface Provider extends AsyncDisposable {
  readonly url: string;
  /** What `openai-compatible/…` needs to find it. */
  readonly env: { readonly OPENAI_BASE_URL: string; readonly OPENAI_API_KEY: string };
  /** Every valid request, in the order in which they came. */
  readonly requests: readonly ChatRequest[];
  /** How many valid requests were under way at once, at most. */
  readonly most: () => number;
  /** The errors it answered to invalid requests. */
  readonly refusals: readonly string[];
}

const apiKey = 'test-key';

/** Starts a server that answers every valid request with what `answer` says, and every other one with 400. */
export async function startProvider(
  answer: (request: ChatRequest, index: number) => ChatAnswer | Promise<ChatAnswer>,
): Promise<Provider> {
  const requests: ChatRequest[] = [];
  const refusals: string[] = [];
  let now = 0;
  let most = 0;
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body: unknown = JSON.parse(await textOf(request));
    const fault = routeFault(request) ?? requestFault(body);
    if (fault !== undefined) {
      refusals.push(fault);
      return refuse(response, 400, fault);
    }
    requests.push(body as ChatRequest);
    now += 1;
    most = Math.max(most, now);
    response.once('close', () => {
      now -= 1;
    });
    await send(response, body as ChatRequest, await answer(body as ChatRequest, requests.length - 1));
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => refuse(response, 400, String(error)));
  });
  const port = await listen(server);
  const url = `http://127.0.0.1:${port}/v1`;
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

/** The text of the last user message of a request: what it is about. */
export function lastUserText({ messages }: ChatRequest): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}

/** Whether a request comes after the results of a tool call. */
export function isAfterTools({ messages }: ChatRequest): boolean {
  return messages.at(-1)?.role === 'tool';
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

function refuse(response: ServerResponse, status: number, message: string, retryAfterMs = 1): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // Clients wait between tries; a test need not.
  response.writeHead(status, { 'content-type': 'application/json', 'retry-after-ms': String(retryAfterMs) });
  response.end(
    JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: null } }),
  );
}

async function send(response: ServerResponse, request: ChatRequest, answer: ChatAnswer): Promise<void> {
  if ('status' in answer) return refuse(response, answer.status, answer.message, answer.retryAfterMs);
  if (answer.delayMs !== undefined) await sleep(answer.delayMs);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: request.model };
  const event = (more: JsonObject) => response.write(`data: ${JSON.stringify({ ...head, ...more })}\n\n`);
  const delta = (fields: JsonObject, finish: string | null = null) =>
    event({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });
  delta({ role: 'assistant', content: '' });
  if (answer.reasoning !== undefined) delta({ reasoning_content: answer.reasoning });
  for (const text of textsOf(answer.text)) {
    delta({ content: text });
    await sleep(answer.pauseMs ?? 1);
  }
  if (answer.hang) return;
  if (answer.cut) {
    await sleep(20);
    response.destroy();
    return;
  }
  for (const [index, call] of (answer.calls ?? []).entries()) {
    const { id = `call_${randomId()}`, name } = call;
    const text = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);
    const half = Math.floor(text.length / 2);
    delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
    for (const part of [text.slice(0, half), text.slice(half)])
      delta({ tool_calls: [{ index, function: { arguments: part } }] });
  }
  delta({}, answer.finish ?? (answer.calls === undefined ? 'stop' : 'tool_calls'));
  const { stream_options: options } = request;
  if (isObject(options) && options.include_usage === true) {
    const [prompt, completion] = answer.usage ?? [10, 5];
    const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
    event({ choices: [], usage });
  }
  response.end('data: [DONE]\n\n');
}

function textsOf(text: string | readonly string[] | undefined): readonly string[] {
  if (text === undefined) return [];
  return typeof text === 'string' ? [text] : text;
}

function randomId(): string {
  return Math.random().toString(36).slice(2, 12);
}

function routeFault({ method, url, headers }: IncomingMessage): string | undefined {
  if (method !== 'POST' || url !== '/v1/chat/completions') return `no such route: ${method} ${url}`;
  return headers.authorization === `Bearer ${apiKey}` ? undefined : 'incorrect API key provided';
}

/** What a strict server would refuse a request for. */
function requestFault(body: unknown): string | undefined {
  if (!isObject(body) || typeof body.model !== 'string' || body.model === '')
    return 'you must provide a model';
  if (body.stream !== true) return 'this server only streams';
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0) return '[] is too short - messages';
  let open: string[] = [];
  const seen = new Set<string>();
  for (const [i, message] of messages.entries()) {
    if (!isObject(message)) return `messages.${i}: not an object`;
    if (message.role === 'tool') {
      const at = open.indexOf(String(message.tool_call_id));
      if (at === -1) return `messages.${i}: no tool call before it has the id ${message.tool_call_id}`;
      open.splice(at, 1);
      if (typeof message.content !== 'string') return `messages.${i}: the content must be a text`;
      continue;
    }
    if (open.length > 0) return `messages.${i}: these calls have no result: ${open.join(', ')}`;
    const fault = messageFault(message, seen);
    if (fault !== undefined) return `messages.${i}: ${fault}`;
    open = callsOf(message).map(({ id }) => String(id));
  }
  return open.length === 0 ? undefined : `these calls have no result: ${open.join(', ')}`;
}

function messageFault(message: Record<string, Json>, seen: Set<string>): string | undefined {
  const { role, content } = message;
  if (role !== 'system' && role !== 'user' && role !== 'assistant') return `no such role: ${String(role)}`;
  const calls = callsOf(message);
  for (const call of calls) {
    const fault = callFault(call, seen);
    if (fault !== undefined) return fault;
  }
  if (calls.length > 0 && (content === null || content === undefined || content === '')) return undefined;
  return contentFault(content);
}

function contentFault(content: Json | undefined): string | undefined {
  if (typeof content === 'string') return content === '' ? 'the content is empty' : undefined;
  if (!Array.isArray(content) || content.length === 0) return 'the content is empty';
  return content.some((part) => isObject(part) && part.type === 'text' && part.text === '')
    ? 'a text of the content is empty'
    : undefined;
}

function callFault(call: Record<string, Json>, seen: Set<string>): string | undefined {
  const { id } = call;
  if (typeof id !== 'string' || id === '') return 'a tool call has no id';
  if (seen.has(id)) return `two tool calls have the id ${id}`;
  seen.add(id);
  const asked = call.function;
  if (!isObject(asked) || typeof asked.name !== 'string' || asked.name === '') return 'a call has no name';
  if (typeof asked.arguments !== 'string') return 'the arguments of a call must be a text';
  try {
    return isObject(JSON.parse(asked.arguments)) ? undefined : 'the arguments of a call must be an object';
  } catch {
    return 'the arguments of a call are not JSON';
  }
}

function callsOf(message: Record<string, Json>): Record<string, Json>[] {
  const calls = message.tool_calls;
  return Array.isArray(calls) ? calls.filter(isObject) : [];
}
