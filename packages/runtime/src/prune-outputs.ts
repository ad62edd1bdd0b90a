import { type Entry, entryTokens, isObject, type PrunedOutput, prunedOutputs } from '@tapedeck/tape';
import type { ResolvedPolicy } from './compaction-policy.ts';
import { fileSets } from './file-sets.ts';

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
  const calls = entries.filter(({ kind }) => kind === 'message');
  for (const entry of entries.filter(({ kind }) => kind === 'tool-result').toReversed()) {
    const { read, modified } = fileSets([...callOf(calls, entry), entry]);
    for (const path of [...read, ...modified])
      if (!newest.has(path) && newest.size < most) newest.set(path, entry.seq);
    if (newest.size >= most) break;
  }
  return new Set(newest.values());
}

/** The message that asked for a result. */
function callOf(messages: readonly Entry[], { seq, payload }: Entry): readonly Entry[] {
  const id = isObject(payload) ? payload.toolCallId : undefined;
  const asked = messages.findLast(
    (message) =>
      message.seq < seq &&
      isObject(message.payload) &&
      Array.isArray(message.payload.content) &&
      message.payload.content.some(
        (part) => isObject(part) && part.type === 'tool-call' && part.toolCallId === id,
      ),
  );
  return asked === undefined ? [] : [asked];
}
