import type { Chunk } from '../stream/chunks.ts';
import { errorText, type OnChatError } from './errors.ts';

/** How often an answer that makes no progress sends a comment, so that proxies keep the connection open. */
const keepAliveMs = 15_000;

/**
 * Chunks as server-sent events, in the form of the SDK's `createUIMessageStreamResponse`. The SDK pipes each chunk
 * through four streams, which costs more than the answer itself when many are sent at once.
 */
export function eventStream(chunks: AsyncIterable<Chunk>, onError: OnChatError): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const reader = chunks[Symbol.asyncIterator]();
  const event = (data: string) => encoder.encode(`data: ${data}\n\n`);
  let timer: NodeJS.Timeout | undefined;
  let isQuiet = false;
  let isLeft = false;
  const end = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    clearInterval(timer);
    controller.enqueue(event('[DONE]'));
    controller.close();
  };
  return new ReadableStream({
    start: (controller) => {
      timer = setInterval(() => {
        // A client that does not read gets none: they would only be kept for it.
        if (isQuiet && (controller.desiredSize ?? 0) > 0)
          controller.enqueue(encoder.encode(': keep-alive\n\n'));
        isQuiet = true;
      }, keepAliveMs).unref();
    },
    pull: async (controller) => {
      try {
        const { done, value } = await reader.next();
        if (isLeft) return;
        isQuiet = false;
        if (done === true) end(controller);
        else controller.enqueue(event(JSON.stringify(value)));
      } catch (error) {
        const failed: Chunk = { type: 'error', errorText: errorText(error, onError) };
        if (isLeft) return;
        controller.enqueue(event(JSON.stringify(failed)));
        end(controller);
      }
    },
    cancel: () => {
      isLeft = true;
      clearInterval(timer);
      // It returns once its next chunk has arrived, and the client is gone.
      reader.return?.().catch(() => {});
    },
  });
}

/**
 * The text of an answer alone. What ends the answer before its first text is thrown; after it, the stream breaks, since
 * it has no other way to tell.
 */
export async function textStream(
  chunks: AsyncIterable<Chunk>,
  onError: OnChatError,
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const texts = textsOf(chunks);
  let next: IteratorResult<string> | undefined = await texts.next();
  return new ReadableStream({
    pull: async (controller) => {
      try {
        const { done, value } = next ?? (await texts.next());
        next = undefined;
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      } catch (error) {
        controller.error(new Error(errorText(error, onError)));
      }
    },
    cancel: () => {
      texts.return(undefined).catch(() => {});
    },
  });
}

async function* textsOf(chunks: AsyncIterable<Chunk>): AsyncGenerator<string> {
  for await (const chunk of chunks) if (chunk.type === 'text-delta') yield chunk.delta;
}

/** The headers of a stream of events, which the SDK's clients and proxies expect. */
export const eventHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  connection: 'keep-alive',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no',
};

/** The headers of a stream of text. */
export const textHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
};
