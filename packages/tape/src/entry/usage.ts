import type { Meta } from './entry.ts';
import { isObject, type Json } from './json.ts';

/**
 * Tokens of one or more model calls. The parts do not overlap: input excludes cache, output excludes
 * reasoning.
 */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** Returns the sum of all tokens; for one call, this is how much of the model's window it used. */
export function totalOf({ input, output, reasoning, cacheRead, cacheWrite }: Usage): number {
  return input + output + reasoning + cacheRead + cacheWrite;
}

/**
 * Returns the usage that an entry's meta records, or undefined. Meta can come from any writer, so a missing
 * or invalid count is 0.
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
  // Some providers report fractions.
  const isCount = typeof tokens === 'number' && tokens > 0 && tokens <= Number.MAX_SAFE_INTEGER;
  return isCount ? tokens : 0;
}
