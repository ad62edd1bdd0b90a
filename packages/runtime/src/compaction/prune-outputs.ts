import { type Entry, entryTokens, isObject, type PrunedOutput, prunedOutputs } from '@tapedeck/tape';
import { fileSets } from './file-sets.ts';
import type { ResolvedPolicy } from './policy.ts';

/**
 * The outputs that can be left out of a view, the oldest first, until so many tokens are saved: large ones that a model has
 * seen and gone on from, of no tool that is protected, and not the newest of a file that was touched lately (G50, G51). Pure.
 * @param entries what the view shows, in order
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
  const gone = prunedOutputs(entries);
  const outputs: PrunedOutput[] = [];
  let saved = 0;
  for (const entry of entries) {
    const { kind, seq, payload, meta } = entry;
    if (saved >= enough) break;
    if (kind !== 'tool-result' || !isObject(payload) || meta.context === false) continue;
    if (seq > (answered?.seq ?? 0) || gone.has(seq) || recent.has(seq)) continue;
    if (prune.protect.includes(String(payload.toolName))) continue;
    const tokens = entryTokens(entry, countTokens);
    if (tokens < prune.minTokens) continue;
    outputs.push({ seq, toolCallId: String(payload.toolCallId), tokens });
    saved += tokens;
  }
  return outputs;
}

/** Positions of the newest outputs of the files that were touched last. */
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

/** Results in order, each after the message that asked for it, where one did. */
function answeredIn(entries: readonly Entry[]): readonly (readonly Entry[])[] {
  const asked = new Map<unknown, Entry>();
  return entries.flatMap((entry) => {
    const { kind, payload } = entry;
    if (!isObject(payload)) return kind === 'tool-result' ? [[entry]] : [];
    if (kind === 'message' && Array.isArray(payload.content))
      for (const part of payload.content)
        if (isObject(part) && part.type === 'tool-call') asked.set(part.toolCallId, entry);
    if (kind !== 'tool-result') return [];
    const call = asked.get(payload.toolCallId);
    return [call === undefined ? [entry] : [call, entry]];
  });
}
