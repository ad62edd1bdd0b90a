import { type Draft, type Entry, note, type Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';

/** The event that leaves outputs of calls out of the views after it. */
const prunedName = 'context/pruned';

/** An output of a call that views leave out, and how large it was. */
export interface PrunedOutput {
  /** Position of the result. */
  readonly seq: Seq;
  readonly toolCallId: string;
  readonly tokens: number;
}

/** Leaves outputs out of the views after it. What they said stays where it is; a rewind to before it shows them again. */
export const prune = (
  outputs: readonly PrunedOutput[],
  { trigger }: { readonly trigger: 'manual' | 'threshold' },
): Draft =>
  note(prunedName, {
    trigger,
    outputs: outputs.map(({ seq, toolCallId, tokens }) => ({ seq, toolCallId, tokens })),
    tokens: outputs.reduce((sum, { tokens }) => sum + tokens, 0),
  });

/** Whether an entry leaves outputs out. */
export function isPrune({ kind, name }: Entry): boolean {
  return kind === 'event' && name === prunedName;
}

/** The outputs that entries leave out, with their sizes. What is no output of a result before it is none: a tape is data. */
export function prunedOutputs(entries: readonly Entry[]): ReadonlyMap<Seq, number> {
  const pruned = new Map<Seq, number>();
  for (const entry of entries) {
    if (!isPrune(entry) || !isObject(entry.payload) || !Array.isArray(entry.payload.outputs)) continue;
    for (const output of entry.payload.outputs)
      if (isObject(output) && typeof output.seq === 'number' && output.seq < entry.seq)
        pruned.set(output.seq, typeof output.tokens === 'number' ? output.tokens : 0);
  }
  return pruned;
}
