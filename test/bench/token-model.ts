import { setTimeout as sleep } from 'node:timers/promises';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** A model that answers with this many tokens, at a rate or as fast as they are read. */
export function tokens(count: number, perSecond: number): LanguageModelV4 {
  async function* parts(): AsyncGenerator<LanguageModelV4StreamPart> {
    yield { type: 'stream-start', warnings: [] };
    yield { type: 'text-start', id: 't' };
    const start = performance.now();
    for (let i = 0; i < count; i += 1) {
      const due = start + (i * 1000) / perSecond;
      if (due > performance.now()) await sleep(due - performance.now());
      yield { type: 'text-delta', id: 't', delta: `token${i} ` };
    }
    yield { type: 'text-end', id: 't' };
    yield { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage };
  }
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('it only streams')),
    doStream: async () => ({ stream: ReadableStream.from(parts()) }),
  };
}
