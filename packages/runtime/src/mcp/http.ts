import { messageOf } from '../errors.ts';

/** Why a server of an address is lost. `wasDelivered`: it may have done what it was asked. */
export interface Loss {
  readonly why: string;
  readonly wasDelivered: boolean;
}

/**
 * A `fetch` for the transport of the AI SDK, which reads answers of any length, and waits for ever for one whose stream of
 * events broke off. An answer that is too long or breaks off becomes an error that answers the request.
 * @param lost called when the server does not answer, or does not know its session any more
 */
export function boundedFetch(max: number, lost: (loss: Loss) => void): typeof fetch {
  return async (input, init) => {
    const isPost = init?.method === 'POST';
    let response: Response;
    try {
      response = await fetch(input, init);
    } catch (error) {
      const why = causeOf(error);
      if (isPost && init?.signal?.aborted !== true)
        lost({ why, wasDelivered: !/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(why) });
      throw new Error(why, { cause: error });
    }
    const hasSession = new Headers(init?.headers).has('mcp-session-id');
    if (isPost && hasSession && (response.status === 404 || response.status === 400))
      lost({ why: `it does not know its session any more (HTTP ${response.status})`, wasDelivered: false });
    if (response.body === null) return response;
    const isEvents = response.headers.get('content-type')?.includes('text/event-stream') === true;
    const body = isEvents
      ? response.body
          .pipeThrough(boundedEvents(max))
          .pipeThrough(whole(isPost ? idIn(init?.body) : undefined))
      : response.body.pipeThrough(bounded(max));
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

function tooLong(max: number): Error {
  return new Error(`its answer has more than ${max} bytes`);
}

function bounded(max: number): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  return new TransformStream({
    transform: (chunk, controller) => {
      size += chunk.length;
      if (size > max) throw tooLong(max);
      controller.enqueue(chunk);
    },
  });
}

/** Counts the bytes of each event: a blank line ends one. */
function boundedEvents(max: number): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  return new TransformStream({
    transform: (chunk, controller) => {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const end = Math.max(bytes.lastIndexOf('\n\n'), bytes.lastIndexOf('\n\r\n'));
      size = end === -1 ? size + bytes.length : bytes.length - end;
      if (size > max) throw tooLong(max);
      controller.enqueue(chunk);
    },
  });
}

/** Ends a stream of events with an error that answers the request. One that has its answer drops it. */
function whole(id: string | number | undefined): TransformStream<Uint8Array, Uint8Array> {
  if (id === undefined) return new TransformStream();
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const answer = (message: string) => {
    const error = { jsonrpc: '2.0', id, error: { code: -32_000, message } };
    return Buffer.from(`\n\ndata: ${JSON.stringify(error)}\n\n`);
  };
  const end = async (message: string) => {
    await writer.write(answer(message));
    await writer.close();
  };
  return {
    readable,
    writable: new WritableStream({
      write: async (chunk) => await writer.write(chunk),
      close: async () => await end('it ended its answer before it gave one'),
      abort: async (reason) => await end(causeOf(reason)),
    }),
  };
}

/** The id of the request in a body. */
function idIn(body: unknown): string | number | undefined {
  if (typeof body !== 'string') return undefined;
  const { id } = JSON.parse(body) as { readonly id?: string | number };
  return id;
}

/** What is behind an error of `fetch`, whose own message says nothing. */
function causeOf(error: unknown): string {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  const message = messageOf(cause instanceof Error && cause.message !== '' ? cause : error);
  return typeof code === 'string' && !message.includes(code) ? `${message} (${code})` : message;
}
