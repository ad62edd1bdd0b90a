import type { Entry } from '@tapedeck/tape';
import { entryTokens, isObject, type PrunedOutput, prunedOutputs } from '@tapedeck/tape/internal';
import { pairClientCalls } from './client-calls.ts';
import { filesOf } from './file-sets.ts';
import type { ResolvedPolicy } from './policy.ts';

/**
 * The outputs to prune from a view, oldest first, until `enough` tokens are saved. Skips small outputs,
 * outputs after the last assistant message, outputs of protected tools, and the newest output of each
 * recently used file. Pure.
 * @param entries the entries that the view shows, in order
 */
export function outputsToPrune(
  entries: readonly Entry[],
  { prune, countTokens }: Pick<ResolvedPolicy, 'prune' | 'countTokens'>,
  { enough = Number.POSITIVE_INFINITY }: { readonly enough?: number } = {},
): readonly PrunedOutput[] {
  const answered = entries.findLast(
    ({ kind, payload }) => kind === 'message' && isObject(payload) && payload.role === 'assistant',
  );
  const recent = recentFiles(entries, prune.keepFiles);
  const pruned = prunedOutputs(entries);
  const outputs: PrunedOutput[] = [];
  let saved = 0;
  for (const entry of entries) {
    const { kind, seq, payload, meta } = entry;
    if (saved >= enough) break;
    if (kind !== 'tool-result' || !isObject(payload) || meta.context === false) continue;
    if (seq > (answered?.seq ?? 0) || pruned.has(seq) || recent.has(seq)) continue;
    if (prune.protect.includes(String(payload.toolName))) continue;
    const tokens = entryTokens(entry, countTokens);
    if (tokens < prune.minTokens) continue;
    outputs.push({ seq, toolCallId: String(payload.toolCallId), tokens });
    saved += tokens;
  }
  return outputs;
}

/** Positions of the newest output of each of the `most` files that were used last. */
function recentFiles(entries: readonly Entry[], most: number): ReadonlySet<number> {
  const newest = new Map<string, number>();
  const { answered } = pairClientCalls(entries);
  for (const entry of entries.toReversed()) {
    if (newest.size >= most) break;
    const { read, modified } = filesOf(entry, answered.get(entry)?.part);
    for (const path of [...read, ...modified])
      if (!newest.has(path) && newest.size < most) newest.set(path, entry.seq);
  }
  return new Set(newest.values());
}
