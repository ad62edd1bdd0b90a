import type { SessionInfo, TapeStore } from '@tapedeck/tape';

/**
 * Whether the process of a session's last run died during it, as its tape or its task shows: the run has no
 * recorded end, and no process writes the session. `id` is the ULID.
 */
export async function isInterrupted(store: TapeStore, id: string): Promise<boolean> {
  const info = await store.sessions.find(id);
  return info !== undefined && (await interruptedAmong(store, [info])).has(id);
}

/** The ULIDs of those among some sessions whose process died during a run. */
export async function interruptedAmong(
  store: TapeStore,
  infos: readonly SessionInfo[],
): Promise<ReadonlySet<string>> {
  const interrupted = new Set<string>();
  const open = infos.filter(hasNoEnd);
  if (open.length === 0) return interrupted;
  const owned = new Set((await store.leases.list()).map(({ id }) => id));
  for (const { id } of open) {
    if (owned.has(id)) continue;
    // A run may have begun and ended between the two looks.
    const now = await store.sessions.find(id);
    if (now !== undefined && hasNoEnd(now)) interrupted.add(id);
  }
  return interrupted;
}

/** Whether the end of a session's last run is not recorded, on its tape or as the state of its task. Pure. */
function hasNoEnd({ task, openRun, settled, head }: SessionInfo): boolean {
  // Its row records the end of a task, also of one whose run could not be recorded.
  if (task !== undefined && task !== 'running') return false;
  // The process died before the first entry of the task, or before the task was recorded as ended. A task with open
  // calls waits for their answers.
  return openRun === true || (task === 'running' && settled === head);
}

/** Whether the last run on a session's own tape was interrupted, so that it has to continue from the tail. */
export async function wasInterrupted(store: TapeStore, session: string): Promise<boolean> {
  return (await store.sessions.find(session))?.openRun === true;
}
