import type { JsonObject } from '@tapedeck/tape';

/** Tokens of one or more model calls. The parts do not overlap: input without cache, output without reasoning (K25). */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

export const noUsage: Usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** The AI SDK's counts of one step, which overlap. */
interface SdkUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly inputTokenDetails?: {
    readonly noCacheTokens?: number | undefined;
    readonly cacheReadTokens?: number | undefined;
    readonly cacheWriteTokens?: number | undefined;
  };
  readonly outputTokenDetails?: { readonly reasoningTokens?: number | undefined };
}

/** Takes cached tokens out of the input and reasoning out of the output (G9, K25). */
export function normaliseUsage(usage: SdkUsage): Usage {
  const cacheRead = usage.inputTokenDetails?.cacheReadTokens ?? 0;
  const cacheWrite = usage.inputTokenDetails?.cacheWriteTokens ?? 0;
  const reasoning = usage.outputTokenDetails?.reasoningTokens ?? 0;
  const input = usage.inputTokenDetails?.noCacheTokens ?? (usage.inputTokens ?? 0) - cacheRead - cacheWrite;
  return {
    input: Math.max(0, input),
    output: Math.max(0, (usage.outputTokens ?? 0) - reasoning),
    reasoning,
    cacheRead,
    cacheWrite,
  };
}

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}

/** Usage as an entry's meta keeps it. */
export function usageJson(usage: Usage): JsonObject {
  return { ...usage };
}
