import type { Entry } from '@tapedeck/tape';
import { entryTokens, isObject, type PrunedOutput, prunedOutputs } from '@tapedeck/tape/internal';
import { fileSets } from './file-sets.ts';
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
  for (const answered of answeredIn(entries).toReversed()) {
    const entry = answered.at(-1);
    if (entry === undefined) continue;
    const { read, modified } = fileSets(answered);
    for (const path of [...read, ...modified])
      if (!newest.has(path) && newest.size < most) newest.set(path, entry.seq);
    if (newest.size >= most) break;
  }
  return new Set(newest.values());
}

/** The results in order, each after the message that holds its call, if any. */
function answeredIn(entries: readonly Entry[]): readonly (readonly Entry[])[] {
  const callers = new Map<unknown, Entry>();
  return entries.flatMap((entry) => {
    const { kind, payload } = entry;
    if (!isObject(payload)) return kind === 'tool-result' ? [[entry]] : [];
    if (kind === 'message' && Array.isArray(payload.content))
      for (const part of payload.content)
        if (isObject(part) && part.type === 'tool-call') callers.set(part.toolCallId, entry);
    if (kind !== 'tool-result') return [];
    const call = callers.get(payload.toolCallId);
    return [call === undefined ? [entry] : [call, entry]];
  });
}
