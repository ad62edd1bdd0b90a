import { clientCalls, type Entry, isObject, type TapeStore } from '@tapedeck/tape';

/** How far back the last act of a run is looked for: what lies between are facts that others appended. */
const backMax = 50;

/** Notes that end a run; what comes after them is another. */
const ends: ReadonlySet<string> = new Set(['run/aborted', 'run/error', 'run/halted', 'run/waiting']);

/** Whether a session's last run was cut off, so that going on from the tail is what is left to do. */
export async function wasInterrupted(store: TapeStore, session: string): Promise<boolean> {
  if ((await store.liveRuns(session)).length > 0) return true;
  const entries = await Array.fromAsync(store.read(session, { last: backMax }));
  for (const entry of entries.reverse()) {
    const cut = cutOff(entry);
    if (cut !== undefined) return cut;
  }
  return false;
}

/** What an entry tells of it, if anything. Pure. */
function cutOff({ kind, name = '', payload, meta }: Entry): boolean | undefined {
  if (kind === 'event') return name === 'run/interrupted' ? true : ends.has(name) ? false : undefined;
  // What is behind a rewind is not gone on with.
  if (kind === 'rewind') return false;
  if (kind === 'tool-result') return true;
  if (kind !== 'message' || !isObject(payload)) return undefined;
  if (payload.role === 'assistant') return meta.partial === true || clientCalls(payload).length > 0;
  // One that was sent again by a rewind awaits its answer.
  return meta.run === undefined && meta.resends === undefined ? undefined : true;
}
