import type { Entry, TapeStore } from '@tapedeck/tape';
import { clientCalls, isObject } from '@tapedeck/tape/internal';
import { abortedWhy, openBatch } from './open-batch.ts';

/**
 * How many entries are searched for the last one of a run, in turn. Usually it is the last of the tape; other
 * writers may append entries after it.
 */
const depths = [2, 50, 1_000];

/** Notes that end a run. */
const ends: ReadonlySet<string> = new Set(['run/aborted', 'run/error', 'run/halted', 'run/waiting']);

/**
 * Whether the process of a session's last run died during it, as its tape or its task shows: the run has no
 * recorded end, and no process writes the session. `id` is the ULID.
 */
export async function isInterrupted(store: TapeStore, id: string): Promise<boolean> {
  if (!(await hasNoEnd(store, id))) return false;
  if ((await store.leases.list()).some((owner) => owner.id === id)) return false;
  // A run may have begun and ended between the two looks.
  return await hasNoEnd(store, id);
}

async function hasNoEnd(store: TapeStore, id: string): Promise<boolean> {
  const info = await store.sessions.find(id);
  // Its row records the end of a task, also of one whose run could not be recorded.
  if (info?.task !== undefined && info.task !== 'running') return false;
  if (await wasInterrupted(store, id)) return true;
  // Its process died before the first entry of the task, or before the task was recorded as ended. A task with
  // open calls waits for their answers.
  return info?.task === 'running' && (await openBatch(store, info)).length === 0;
}

/** Whether the last run on a session's own tape was interrupted, so that it has to continue from the tail. */
export async function wasInterrupted(store: TapeStore, session: string): Promise<boolean> {
  if ((await store.live.read(session)).length > 0) return true;
  for (const last of depths) {
    const entries = await Array.fromAsync(store.entries.read(session, { own: true, last }));
    for (const entry of entries.toReversed()) {
      const cut = cutOff(entry);
      if (cut !== undefined) return cut;
    }
    if (entries.length < last) return false;
  }
  return false;
}

/** Whether an entry shows an interrupted run; undefined when it does not decide. Pure. */
function cutOff({ kind, name = '', payload, meta }: Entry): boolean | undefined {
  if (kind === 'event') return name === 'run/interrupted' ? true : ends.has(name) ? false : undefined;
  // A run before a rewind does not continue.
  if (kind === 'rewind') return false;
  const isOfRun = meta.run !== undefined;
  if (kind === 'tool-result') {
    // A call of an aborted run got this result after the run's end.
    if (meta.source === 'repair' && closesAborted(payload)) return undefined;
    return isOfRun || meta.source === 'repair' ? true : undefined;
  }
  if (kind !== 'message' || !isObject(payload)) return undefined;
  if (payload.role === 'assistant')
    return isOfRun && (meta.partial === true || clientCalls(payload).length > 0);
  // A message that a rewind resent still needs an answer.
  return isOfRun || meta.resends !== undefined ? true : undefined;
}

function closesAborted(payload: Entry['payload']): boolean {
  const { type, value } = isObject(payload) && isObject(payload.output) ? payload.output : {};
  return type === 'error-text' && String(value).endsWith(`: ${abortedWhy}.`);
}
