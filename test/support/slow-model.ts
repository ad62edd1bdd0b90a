import { setTimeout as sleep } from 'node:timers/promises';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 3, text: 3, reasoning: undefined },
};

/** A model that gives the same answer each time, a piece at a time, and counts its calls. */
export function slowModel(
  pieces: readonly string[],
  delayMs: number,
): LanguageModelV4 & { readonly calls: () => number } {
  let calls = 0;
  return {
    specificationVersion: 'v4',
    provider: 'slow',
    modelId: 'slow',
    supportedUrls: {},
    calls: () => calls,
    doGenerate: () => Promise.reject(new Error('it only streams')),
    doStream: async ({ abortSignal }) => {
      calls += 1;
      async function* parts(): AsyncGenerator<LanguageModelV4StreamPart> {
        yield { type: 'stream-start', warnings: [] };
        yield { type: 'text-start', id: 't' };
        for (const delta of pieces) {
          await sleep(delayMs, undefined, { signal: abortSignal });
          yield { type: 'text-delta', id: 't', delta };
        }
        yield { type: 'text-end', id: 't' };
        yield { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage };
      }
      return { stream: ReadableStream.from(parts()) };
    },
  };
}
