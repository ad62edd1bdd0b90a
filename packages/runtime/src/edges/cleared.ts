import { type HomeStore, note, type SessionInfo } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import { copiesIn } from '../copies/copies.ts';
import { clearedEvent } from '../imported/copy-notes.ts';
import { sessionOf, sourceOf } from '../imported/origins.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { appendBeside } from './beside.ts';
import { link } from './link.ts';

/** The type of the edge between two sessions of which the second begins behind a `/clear`. */
export const clearType = 'clear';

/**
 * Puts each session that begins behind a `/clear` under the one that its run began just before it: no record says more than with
 * which session the run began. So the first of them is under that.
 */
export function placeRun(
  store: HomeStore,
  { format, session: own, clearedFrom }: ImportPlan,
  session: string,
): void {
  const info = store.sessions.find(session);
  if (info === undefined) return;
  if (clearedFrom !== undefined) noteRun(store, info, { format, run: clearedFrom });
  const run = clearedFrom ?? own;
  const cleared = copiesIn(store).tools.clearedIn(sourceOf(format, run));
  if (cleared.length === 0) return;
  const began = sessionOf(store, { format, session: run });
  let before = began;
  for (const id of cleared) {
    const one = store.sessions.find(id);
    if (one === undefined || isDeleted(one) || isCopy(one)) continue;
    if (before !== undefined) placeBehind(store, one, { before, isRun: before === began });
    before = one;
  }
}

function placeBehind(
  store: HomeStore,
  info: SessionInfo,
  { before, isRun }: { readonly before: SessionInfo; readonly isRun: boolean },
): void {
  if (info.link?.type !== clearType && treeParentOf(info).parentId !== undefined) return;
  const evidence = isRun
    ? 'it begins behind a /clear, in the run that began with that session'
    : 'it is the next one to begin behind a /clear, in the run that made that session';
  link(store, info.id, before.id, { type: clearType, derived: true, evidence });
}

/** Whether it is below another session that begins as it does: a copy says what its source said of the run. */
function isCopy(info: SessionInfo): boolean {
  return info.link?.type === 'copy' && treeParentOf(info).parentId !== undefined;
}

function noteRun(
  store: HomeStore,
  { id }: SessionInfo,
  { format, run }: { readonly format: string; readonly run: string },
): void {
  const isNoted = [...store.entries.read(id, { own: true, name: clearedEvent, limit: 1 })].length > 0;
  const key = 'import:cleared';
  if (!isNoted) appendBeside(store, id, [{ ...note(clearedEvent, { session: run }), key }]);
  copiesIn(store).addCleared(sourceOf(format, run), id);
}
