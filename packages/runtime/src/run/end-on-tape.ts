import type { Entry, TapeStore, Task } from '@tapedeck/tape';
import { clientCalls, isObject } from '@tapedeck/tape/internal';
import type { SessionFacts } from '../terms/terms.ts';

/**
 * The number of entries that are searched for the end of a task. Other writers may append entries after it.
 */
const backMax = 50;

/**
 * The end of a task as a child's own entries show it, when its process died before it recorded the task.
 * Without it, a resumed child would answer twice. Undefined when the task has not ended.
 */
export async function endOnTape(store: TapeStore, { info, origin }: SessionFacts): Promise<Task | undefined> {
  const owesResult = origin.terms.output !== undefined;
  const entries = await Array.fromAsync(store.entries.read(info.id, { own: true, last: backMax }));
  for (const entry of entries.reverse()) {
    const found = endIn(entry, owesResult);
    if (found === 'none') return undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * The end that an entry shows: `none` for an unfinished task, undefined for an entry that no run wrote. Pure.
 */
function endIn({ kind, name = '', payload, meta }: Entry, owesResult: boolean): Task | 'none' | undefined {
  if (kind === 'event') return endNotes[name];
  if (kind === 'tool-result') return 'none';
  if (meta.run === undefined) return undefined;
  if (kind === 'result') return 'completed';
  if (kind !== 'message' || !isObject(payload)) return undefined;
  if (payload.role !== 'assistant' || clientCalls(payload).length > 0) return 'none';
  if (meta.partial === true) return 'aborted';
  if (meta.finish === 'error') return 'failed';
  if (meta.finish === 'content-filter') return 'filtered';
  // A child with an output schema still has to give its result.
  return owesResult ? 'none' : 'completed';
}

const endNotes: Readonly<Record<string, Task | 'none'>> = {
  'run/aborted': 'aborted',
  'run/halted': 'halted',
  'run/error': 'failed',
  'run/interrupted': 'none',
  'run/waiting': 'none',
};
