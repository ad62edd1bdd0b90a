import { clientCalls, type Entry, isObject, type TapeStore, type Task } from '@tapedeck/tape';
import type { SessionFacts } from '../terms/terms.ts';

/** How far back the end of a child's work is looked for: what lies after it are facts that others appended. */
const backMax = 50;

/**
 * The end that a child's own entries show, when its process died before it could record the task: asking its model again
 * would double an answer. Nothing when the work is not over.
 */
export async function endOnTape(store: TapeStore, { info, origin }: SessionFacts): Promise<Task | undefined> {
  const owesResult = origin.terms.output !== undefined;
  const entries = await Array.fromAsync(store.read(info.id, { own: true, last: backMax }));
  for (const entry of entries.reverse()) {
    const found = endIn(entry, owesResult);
    if (found === 'none') return undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What the newest entry that a run wrote says; nothing of one that none did. Pure. */
function endIn({ kind, name = '', payload, meta }: Entry, owesResult: boolean): Task | 'none' | undefined {
  if (kind === 'event') return endNotes[name];
  if (kind === 'tool-result') return 'none';
  if (meta.run === undefined) return undefined;
  if (kind === 'result') return 'completed';
  if (kind !== 'message' || !isObject(payload)) return undefined;
  if (payload.role !== 'assistant' || clientCalls(payload).length > 0) return 'none';
  if (meta.partial === true) return 'aborted';
  if (meta.finish === 'error') return 'failed';
  // One that is to give its result in a form has not given it yet.
  return owesResult ? 'none' : 'completed';
}

const endNotes: Readonly<Record<string, Task | 'none'>> = {
  'run/aborted': 'aborted',
  'run/halted': 'halted',
  'run/error': 'failed',
  'run/interrupted': 'none',
  'run/waiting': 'none',
};
