import type { Chunk } from '../stream/chunks.ts';

/** How often an answer that makes no progress sends a comment, so that proxies keep the connection open. */
const keepAliveMs = 15_000;

/**
 * Chunks as server-sent events, in the form of the SDK's `createUIMessageStreamResponse`. The SDK pipes each chunk
 * through four streams, which costs more than the answer itself when many are sent at once.
 */
export function eventStream(
  chunks: AsyncIterable<Chunk>,
  onError: (error: unknown) => void,
): ReadableStream<Uint8Array> {
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
        if (isQuiet) controller.enqueue(encoder.encode(': keep-alive\n\n'));
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
        onError(error);
        if (isLeft) return;
        const failed: Chunk = { type: 'error', errorText: 'the answer could not be read' };
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

/** The headers of such a stream, which the SDK's clients and proxies expect. */
export const eventHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  connection: 'keep-alive',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no',
};
