                                                    
import { isPrune, prunedOutputs } from './pruned.js';
import { entryTokens } from './tokens.js';

/**
 * Returns the first position of the newest part of a history with N messages, or of at most N tokens;
 * undefined when that is the whole history. The part begins at a message and holds at least the last one.
 * @param newestFirst read only as far as needed
 */
export function windowStart(
  newestFirst                 ,
  window                                      ,
  { prunes }                              ,
)                  {
  const limit = typeof window === 'number' ? undefined : window.tokens;
  const pruned = new Map             ();
  let [messages, tokens] = [0, 0];
  let start                 ;
  for (const entry of newestFirst) {
    if (limit !== undefined) {
      if (prunes && isPrune(entry)) for (const [seq, was] of prunedOutputs([entry])) pruned.set(seq, was);
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
