import type { Entry, HomeStore, SessionInfo } from '@tapedeck/tape';
import type { SessionRange } from '@tapedeck/tape/store';

/** Whether `tape undo SESSION` can undo the newest act of a session as it is now. */
export async function canUndoNewest(store: HomeStore, info: SessionInfo): Promise<boolean> {
  const { newestAct } = await import('@tapedeck/runtime/internal');
  const { id } = info;
  const act = await newestAct(store, id);
  const [entry] = act === undefined ? [] : store.entries.read(id, { from: act.seq, to: act.seq });
  if (entry === undefined) return false;
  const canUndo = await undoRule(store, info, store.views.ranges(id));
  return canUndo(entry);
}

/** Returns a function that says whether `tape undo` can undo the act of an entry as a session is now, by the rule of that verb. */
export async function undoRule(
  store: HomeStore,
  { id, settled }: SessionInfo,
  ranges: readonly SessionRange[],
): Promise<(entry: Entry) => boolean> {
  const { isAfter, undoable } = await import('@tapedeck/runtime/internal');
  return (entry) => {
    const act = undoable(entry);
    if (act === undefined || act.act === 'rewind') return act !== undefined && !entry.inherited;
    if (settled < act.seq - 1 || ranges.find(({ to }) => act.seq <= to)?.hiddenBy !== undefined) return false;
    // Most are followed at once: of what is not hidden behind an act, little is read.
    return !ranges.some(({ from, to, hiddenBy }) => {
      if (hiddenBy !== undefined || to <= act.seq) return false;
      const behind = store.entries.read(id, { from: Math.max(from, act.seq + 1), to });
      return Iterator.from(behind).some((one) => isAfter(one, act));
    });
  };
}
