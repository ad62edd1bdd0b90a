import { type Entry, estimateTokens, isObject, isPrune, type Part, type StoredMessage } from '@tapedeck/tape';
import { recordedUsage, totalOf } from './usage.ts';

/** Counts the tokens of a text. */
export type CountTokens = ((text: string) => number) | undefined;

/** How many tokens messages take: by the count that is given, else by their characters (J18). */
export function tokensOf(messages: readonly StoredMessage[], count: CountTokens): number {
  if (count === undefined) return estimateTokens(messages);
  return messages
    .flatMap(({ content }) => content)
    .reduce((sum, part) => sum + count(typeof part.text === 'string' ? part.text : JSON.stringify(part)), 0);
}

/** How many tokens an entry adds to a view. */
export function entryTokens({ kind, payload, meta }: Entry, count: CountTokens): number {
  if (meta.context === false || !isObject(payload)) return 0;
  if (kind === 'tool-result')
    return tokensOf([{ role: 'tool', content: [payload as unknown as Part] }], count);
  if (kind !== 'message' || !Array.isArray(payload.content)) return 0;
  return tokensOf([{ role: 'user', content: payload.content as unknown as Part[] }], count);
}

/**
 * How much of a model's window a session takes: what its provider said of the last step, and an estimate of what came
 * after it (K24). Nothing where no step of the view has told: what came before a boundary or a pruning, or what a fork inherited in
 * part, was another prompt.
 * @param entries what the view shows and what begins it, in order of position
 */
export function usedSinceStep(entries: readonly Entry[], count: CountTokens): number | undefined {
  const changed = entries.findLast((entry) => entry.mark === 'boundary' || isPrune(entry));
  const step = entries.findLast(
    ({ kind, payload, meta, inherited }) =>
      kind === 'message' &&
      !inherited &&
      isObject(payload) &&
      payload.role === 'assistant' &&
      recordedUsage(meta) !== undefined,
  );
  const usage = step === undefined ? undefined : recordedUsage(step.meta);
  if (step === undefined || usage === undefined || totalOf(usage) === 0) return undefined;
  if (changed !== undefined && changed.seq > step.seq) return undefined;
  return entries
    .filter(({ seq }) => seq > step.seq)
    .reduce((sum, entry) => sum + entryTokens(entry, count), totalOf(usage));
}
