import type { JsonObject } from '@tapedeck/tape';
import { tokenCount, type Usage } from '@tapedeck/tape/internal';

export type { Usage };

export const noUsage: Usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** The AI SDK's counts of one step; they overlap. */
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

/**
 * Makes the counts disjoint: input without cached tokens, output without reasoning. A provider can report any number:
 * fractions count, invalid numbers are 0, as they are when they are read from a tape.
 */
export function normaliseUsage(usage: SdkUsage): Usage {
  const cacheRead = tokenCount(usage.inputTokenDetails?.cacheReadTokens);
  const cacheWrite = tokenCount(usage.inputTokenDetails?.cacheWriteTokens);
  const reasoning = tokenCount(usage.outputTokenDetails?.reasoningTokens);
  const noCache = usage.inputTokenDetails?.noCacheTokens;
  const input = noCache ?? tokenCount(usage.inputTokens) - cacheRead - cacheWrite;
  return {
    input: tokenCount(input),
    output: tokenCount(tokenCount(usage.outputTokens) - reasoning),
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

/** Usage as an entry's meta stores it. */
export function usageJson(usage: Usage): JsonObject {
  return { ...usage };
}

/** The cost of a call with this usage, in a unit of the deck's choice; undefined if unknown. */
export type CostOf = (usage: Usage, model: string) => number | undefined;

/** The cost of a call as meta stores it. The deck computes it; there is no price table. */
export function costMeta(cost: CostOf | undefined, usage: Usage, model: unknown): { readonly cost?: number } {
  if (cost === undefined || typeof model !== 'string') return {};
  try {
    const known = cost(usage, model);
    return known !== undefined && Number.isFinite(known) ? { cost: known } : {};
  } catch {
    // The answer is recorded even if its cost is unknown.
    return {};
  }
}
