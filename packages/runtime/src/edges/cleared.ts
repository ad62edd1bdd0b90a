import { type HomeStore, note, type SessionInfo } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import { copiesIn } from '../copies/copies.ts';
import { clearedEvent } from '../imported/copy-notes.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { sessionOf, sourceOf } from '../imported/origins.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { appendBeside } from './beside.ts';
import { link, type OnConcluded } from './link.ts';

/** The type of the edge between two sessions of which the second begins behind a `/clear`. */
export const clearType = 'clear';

/** Takes note of the run that began a session behind a `/clear`. */
export function noteRun(store: HomeStore, { format, clearedFrom }: ImportPlan, session: string): void {
  const id = store.sessions.find(session)?.id;
  if (id === undefined || clearedFrom === undefined) return;
  const isNoted = [...store.entries.read(id, { own: true, name: clearedEvent, limit: 1 })].length > 0;
  const key = 'import:cleared';
  if (!isNoted) appendBeside(store, id, [{ ...note(clearedEvent, { session: clearedFrom }), key }]);
  copiesIn(store).addCleared(sourceOf(format, clearedFrom), id);
}

/**
 * Puts each session that begins behind a `/clear` under the one that its run began just before it: no record says more than with
 * which session the run began. So the first of them is under that.
 */
export function placeRun(
  store: HomeStore,
  { format, session, clearedFrom }: ImportPlan,
  onConcluded: OnConcluded,
): void {
  placeCleared(store, { format, run: clearedFrom ?? session }, onConcluded);
}

/** Puts a session back into its run, if one cleared it, once it is below no other one that begins as it does. */
export function placeAgain(store: HomeStore, info: SessionInfo, onConcluded: OnConcluded): void {
  const { clearedFrom: run, origin } = knownSessionsIn(store).of(info);
  if (run !== undefined) placeCleared(store, { format: String(origin?.format), run }, onConcluded);
}

function placeCleared(
  store: HomeStore,
  { format, run }: { readonly format: string; readonly run: string },
  onConcluded: OnConcluded,
): void {
  const cleared = copiesIn(store).tools.clearedIn(sourceOf(format, run));
  if (cleared.length === 0) return;
  const began = sessionOf(store, { format, session: run });
  let before = began;
  for (const id of cleared) {
    const one = store.sessions.find(id);
    if (one === undefined || isDeleted(one) || isCopy(one)) continue;
    if (before !== undefined) placeBehind(store, one, { before, isRun: before === began, onConcluded });
    before = one;
  }
}

function placeBehind(
  store: HomeStore,
  info: SessionInfo,
  {
    before,
    isRun,
    onConcluded,
  }: { readonly before: SessionInfo; readonly isRun: boolean; readonly onConcluded: OnConcluded },
): void {
  const { link: placed } = info;
  if (placed?.type !== clearType && treeParentOf(info).parentId !== undefined) return;
  const evidence = isRun
    ? 'it begins behind a /clear, in the run that began with that session'
    : 'it is the next one to begin behind a /clear, in the run that made that session';
  // Each import of the run comes by all of its sessions: nearly always they are there.
  const isThere = placed?.type === clearType && placed.derived === true && placed.parent === before.session;
  if (isThere && placed.evidence === evidence) return;
  link(store, info.id, before.id, { type: clearType, derived: true, evidence, onConcluded });
}

/** Whether it is below another session that begins as it does: a copy says what its source said of the run. */
function isCopy(info: SessionInfo): boolean {
  return info.link?.type === 'copy' && treeParentOf(info).parentId !== undefined;
}
