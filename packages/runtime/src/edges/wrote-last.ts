import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import { lastSaidIn } from '../imported/last-said.ts';

/** A session in which a run wrote, since when, and why the next one is below it where it wrote there last. */
export interface Written {
  readonly info: SessionInfo;
  /** In milliseconds since 1970. */
  readonly since: number;
  readonly evidence: string;
}

/** Before any time. */
export const always: number = Number.NEGATIVE_INFINITY;

/**
 * The one of some sessions in which a run wrote last before a time: a person can leave a session, and come back to it. Nothing is
 * read where there is but one. Undefined where there is none, or no time.
 */
export function wroteLastIn(
  store: HomeStore,
  written: readonly Written[],
  time: number,
): Written | undefined {
  const [first, ...others] = written;
  if (first === undefined || Number.isNaN(time)) return undefined;
  if (others.length === 0) return first;
  const times = written.map((one) => ({ one, at: wroteAt(store, one, time) }));
  return times.reduce((last, next) => (next.at >= last.at ? next : last)).one;
}

/** When something was said last in a session before a time, in a branch that was left, too. */
function wroteAt(store: HomeStore, { info, since }: Written, time: number): number {
  const copies = copiesIn(store);
  const branches = copies.tools.branchesOf(copies.sourceOf(info.id) ?? '').map(([id]) => id);
  const infos = [info, ...branches.flatMap((id) => store.sessions.find(id) ?? [])];
  return Math.max(since, ...infos.map((one) => lastSaidIn(store).before(one, time)));
}
