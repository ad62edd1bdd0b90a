import type { Entry, TapeStore } from '@tapedeck/tape';
import { clientCalls, isObject } from '@tapedeck/tape/internal';

/**
 * The number of entries that are searched for the last entry of a run. Other writers may append entries after
 * it.
 */
const backMax = 50;

/** Notes that end a run. */
const ends: ReadonlySet<string> = new Set(['run/aborted', 'run/error', 'run/halted', 'run/waiting']);

/** Whether a session's last run was interrupted, so that it has to continue from the tail. */
export async function wasInterrupted(store: TapeStore, session: string): Promise<boolean> {
  if ((await store.live.read(session)).length > 0) return true;
  const entries = await Array.fromAsync(store.entries.read(session, { last: backMax }));
  for (const entry of entries.reverse()) {
    const cut = cutOff(entry);
    if (cut !== undefined) return cut;
  }
  return false;
}

/** Whether an entry shows an interrupted run; undefined when it does not decide. Pure. */
function cutOff({ kind, name = '', payload, meta }: Entry): boolean | undefined {
  if (kind === 'event') return name === 'run/interrupted' ? true : ends.has(name) ? false : undefined;
  // A run before a rewind does not continue.
  if (kind === 'rewind') return false;
  if (kind === 'tool-result') return true;
  if (kind !== 'message' || !isObject(payload)) return undefined;
  if (payload.role === 'assistant') return meta.partial === true || clientCalls(payload).length > 0;
  // A message that a rewind resent still needs an answer.
  return meta.run === undefined && meta.resends === undefined ? undefined : true;
}
