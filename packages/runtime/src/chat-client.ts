/**
 * What a page needs of a chat endpoint beside the AI SDK. Imports nothing, and runs in browsers.
 *
 * @module @tapedeck/runtime/chat-client
 */

/**
 * Makes a `fetch` for the SDK's transports with which the client's `stop()` stops the run too, as the button says: it
 * sends `DELETE …/stream` when a request for an answer is aborted. Without it `stop()` only closes the connection, and the
 * run continues.
 *
 * @example
 * ```ts
 * import { stoppingFetch } from '@tapedeck/runtime/chat-client';
 * import { DefaultChatTransport } from 'ai';
 *
 * const transport = new DefaultChatTransport({ fetch: stoppingFetch() });
 * console.log(typeof transport.sendMessages); // function
 * ```
 */
export function stoppingFetch(
  fetch: typeof globalThis.fetch = (input, init) => globalThis.fetch(input, init),
): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const { signal, body, headers, credentials } = init;
    const url = streamUrl(input instanceof Request ? input.url : String(input), body);
    const stop = () => {
      const type = new Headers(headers);
      type.delete('content-type');
      const sent = fetch(url ?? '', { method: 'DELETE', headers: type, ...(credentials && { credentials }) });
      // The page learns from the messages whether the run has stopped.
      sent.catch(() => {});
    };
    if (url !== undefined) signal?.addEventListener('abort', stop, { once: true });
    return await fetch(input, init);
  };
}

/** A chat of the AI SDK: what `AbstractChat`, and `Chat` of a framework, have of it. */
export interface FollowedChat<Message> {
  readonly id: string;
  readonly status: string;
  messages: Message[];
  resumeStream(): Promise<void>;
}

/** How `catchUp` reaches the endpoint. */
export interface CatchUpOptions {
  /** The address of the endpoint (default `/api/chat`, that of the AI SDK). */
  readonly api?: string;
  /** Only the messages of the last turns. Default: all. */
  readonly last?: number;
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * Gives a chat the messages that its session has, then follows the answer that is being written, if any. A stream has one
 * answer; what else happens to a session, the page learns so: messages of other pages and their answers, reports of
 * children, calls that a new message has denied. Call it when an answer ends, and when a page that was hidden is shown
 * again. It changes nothing while the chat waits for an answer or shows an error. Returns whether it could read the
 * messages.
 *
 * @example
 * ```ts
 * import { catchUp } from '@tapedeck/runtime/chat-client';
 *
 * const chat = { id: 'main', status: 'ready', messages: [], resumeStream: async () => {} };
 * const fetch = async () => Response.json({ messages: [{ id: 'm1', role: 'user', parts: [] }] });
 * console.log(await catchUp(chat, { fetch }), chat.messages.length); // true 1
 * ```
 */
export async function catchUp<Message>(
  chat: FollowedChat<Message>,
  { api = '/api/chat', last, fetch = (input, init) => globalThis.fetch(input, init) }: CatchUpOptions = {},
): Promise<boolean> {
  const query = last === undefined ? '' : `?last=${last}`;
  let messages: Message[];
  try {
    const response = await fetch(`${api.replace(/\/$/, '')}/${encodeURIComponent(chat.id)}${query}`);
    if (!response.ok) return false;
    ({ messages } = (await response.json()) as { messages: Message[] });
  } catch {
    return false;
  }
  // A message that could not be sent would be gone.
  if (chat.status !== 'ready') return true;
  chat.messages = messages;
  await chat.resumeStream();
  return true;
}

/** The address of the stream of a chat: that of a request to resume, or of the id in a message. */
function streamUrl(address: string, body: unknown): string | undefined {
  const end = address.search(/[?#]/);
  const path = end === -1 ? address : address.slice(0, end);
  const rest = end === -1 ? '' : address.slice(end);
  if (path.endsWith('/stream')) return address;
  if (typeof body !== 'string') return undefined;
  const { id } = JSON.parse(body) as { readonly id?: unknown };
  return typeof id === 'string'
    ? `${path.replace(/\/$/, '')}/${encodeURIComponent(id)}/stream${rest}`
    : undefined;
}
