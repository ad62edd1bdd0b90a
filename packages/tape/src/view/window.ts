import type { Entry, Seq } from '../entry/entry.ts';
import { isOmission, omittedMessages } from './omitted.ts';
import { isPrune, prunedOutputs } from './pruned.ts';
import { entryTokens } from './tokens.ts';

/**
 * Returns the first position of the newest part of a history with N messages, or of at most N tokens;
 * undefined when that is the whole history. The part begins at a message and holds at least the last one.
 * @param newestFirst read only as far as needed
 * @param isFull count as well what is pruned or left out
 */
export function windowStart(
  newestFirst: Iterable<Entry>,
  window: number | { readonly tokens: number },
  { isFull }: { readonly isFull: boolean },
): Seq | undefined {
  const limit = typeof window === 'number' ? undefined : window.tokens;
  const pruned = new Map<Seq, number>();
  const omitted = new Set<Seq>();
  let [messages, tokens] = [0, 0];
  let start: Seq | undefined;
  for (const entry of newestFirst) {
    if (!isFull && isOmission(entry)) for (const seq of omittedMessages([entry])) omitted.add(seq);
    if (entry.kind === 'message' && omitted.has(entry.seq)) continue;
    if (limit !== undefined) {
      if (!isFull && isPrune(entry)) for (const [seq, was] of prunedOutputs([entry])) pruned.set(seq, was);
      tokens += entryTokens(entry, undefined, pruned.get(entry.seq));
      if (tokens > limit && start !== undefined) return start;
    }
    if (entry.kind !== 'message') continue;
    start = entry.seq;
    messages += 1;
    if (limit === undefined ? messages === window : tokens > limit) return start;
  }
  return undefined;
}
