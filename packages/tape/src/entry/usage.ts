import type { Meta } from './entry.ts';
import { isObject, type Json } from './json.ts';

/** Tokens of one or more model calls. The parts do not overlap: input without cache, output without reasoning (K25). */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** All tokens of a usage (G7); of one call it is also how much of the model's window was in use (G11). */
export function totalOf({ input, output, reasoning, cacheRead, cacheWrite }: Usage): number {
  return input + output + reasoning + cacheRead + cacheWrite;
}

/**
 * What an entry's meta says that its call took, whoever wrote it; undefined when it says nothing. A count that it does
 * not give, or that counts nothing, is 0.
 */
export function recordedUsage({ usage }: Meta): Usage | undefined {
  if (!isObject(usage)) return undefined;
  return {
    input: count(usage.input),
    output: count(usage.output),
    reasoning: count(usage.reasoning),
    cacheRead: count(usage.cacheRead),
    cacheWrite: count(usage.cacheWrite),
  };
}

function count(tokens: Json | undefined): number {
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0;
}
