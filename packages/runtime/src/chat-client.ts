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
