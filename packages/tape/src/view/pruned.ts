import { type Draft, type Entry, note, type Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';

/** Name of the event that prunes tool outputs from all later views. */
const prunedName = 'context/pruned';

/** A pruned tool output, with its former size. */
export interface PrunedOutput {
  /** Position of the result. */
  readonly seq: Seq;
  readonly toolCallId: string;
  readonly tokens: number;
}

/**
 * Prunes outputs from all later views. The entries stay; a rewind to before this event shows the outputs
 * again.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, prune, toolCall, toolResult, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const call = { toolCallId: 'call-1', toolName: 'read_file' };
 * const { to: seq } = store.entries.append('main', [
 *   user('What is new?'),
 *   assistant([toolCall('call-1', 'read_file', { path: 'NEWS.md' })]),
 *   toolResult(call, 'A very long text.'),
 * ]);
 * store.entries.append('main', [prune([{ seq, toolCallId: 'call-1', tokens: 5 }], { trigger: 'manual' })]);
 * ```
 */
export const prune = (
  outputs: readonly PrunedOutput[],
  { trigger }: { readonly trigger: 'manual' | 'threshold' },
): Draft =>
  note(prunedName, {
    trigger,
    outputs: outputs.map(({ seq, toolCallId, tokens }) => ({ seq, toolCallId, tokens })),
    tokens: outputs.reduce((sum, { tokens }) => sum + tokens, 0),
  });

/** Returns whether an entry prunes outputs. */
export function isPrune({
  kind,
  name,
}: {
  readonly kind: string;
  readonly name?: string | undefined;
}): boolean {
  return kind === 'event' && name === prunedName;
}

/**
 * Returns the outputs that entries prune, with sizes. Ignores any that is no earlier result: payloads are not
 * trusted.
 */
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
