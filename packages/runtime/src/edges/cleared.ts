import { type HomeStore, note, type SessionInfo } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import { copiesIn } from '../copies/copies.ts';
import { clearedEvent, visitedEvent } from '../imported/copy-notes.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { sessionOf, sourceOf } from '../imported/origins.ts';
import type { ImportPlan, Visit } from '../plan/plan.ts';
import { appendBeside } from './beside.ts';
import { link, type OnConcluded } from './link.ts';
import { type Written, writtenIn, wroteLastIn } from './wrote-last.ts';

/** The type of the edge between two sessions of which the second begins behind a `/clear`. */
export const clearType = 'clear';

/** What says which runs wrote in a session. */
type Runs = Pick<ImportPlan, 'format' | 'session' | 'clearedFrom' | 'visitedBy'>;

/** Takes note of the run that began a session behind a `/clear`, and of those that came to it later. */
export function noteRuns(
  store: HomeStore,
  { format, clearedFrom, visitedBy = [] }: Runs,
  session: string,
): void {
  const id = store.sessions.find(session)?.id;
  if (id === undefined) return;
  for (const visit of visitedBy) noteVisit(store, id, visit, sourceOf(format, visit.session));
  if (clearedFrom === undefined) return;
  const isNoted = [...store.entries.read(id, { own: true, name: clearedEvent, limit: 1 })].length > 0;
  const key = 'import:cleared';
  if (!isNoted) appendBeside(store, id, [{ ...note(clearedEvent, { session: clearedFrom }), key }]);
  copiesIn(store).addCleared(sourceOf(format, clearedFrom), id);
}

function noteVisit(store: HomeStore, id: string, { session, at }: Visit, run: string): void {
  const key = `${visitedEvent.replace('/', ':')}:${session}`;
  const isNoted = [...store.entries.read(id, { own: true, name: visitedEvent })].some((one) =>
    one.key?.endsWith(key),
  );
  if (!isNoted) appendBeside(store, id, [{ ...note(visitedEvent, { session, at }), key }]);
  copiesIn(store).addVisited(run, id, at);
}

/**
 * Puts each session that begins behind a `/clear` under the one in which its run was just before: no record says more than with
 * which session the run began, which others it wrote in, and when.
 */
export function placeRuns(
  store: HomeStore,
  { format, session, clearedFrom, visitedBy = [] }: Runs,
  onConcluded: OnConcluded,
): void {
  for (const run of new Set([session, clearedFrom, ...visitedBy.map((one) => one.session)]))
    if (run !== undefined) placeCleared(store, { format, run }, onConcluded);
}

/** Does the same for the runs of a session that has grown. */
export function placeRunsOf(store: HomeStore, id: string, onConcluded: OnConcluded): void {
  const info = store.sessions.find(id);
  if (info === undefined) return;
  const { origin, clearedFrom, visitedBy = [] } = knownSessionsIn(store).of(info);
  if (origin === undefined) return;
  const of = { format: String(origin.format), session: String(origin.session) };
  placeRuns(store, { ...of, ...(clearedFrom !== undefined && { clearedFrom }), visitedBy }, onConcluded);
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
  const { tools } = copiesIn(store);
  const source = sourceOf(format, run);
  const cleared = tools.clearedIn(source);
  if (cleared.length === 0) return;
  const began = sessionOf(store, { format, session: run });
  const visited = tools.visitedIn(source).flatMap((one): Written[] => {
    const info = store.sessions.find(tools.mainOf(one.source) ?? '');
    if (info === undefined || isDeleted(info)) return [];
    const since = Date.parse(one.at);
    return [writtenIn(store, tools, { info, source: one.source, since, evidence: wroteLast })];
  });
  const before: Written[] = [];
  if (began !== undefined && !isDeleted(began))
    before.push(writtenIn(store, tools, { info: began, source, since: Number.NaN, evidence: beganWith }));
  for (const { id, source: own, when } of cleared) {
    const info = store.sessions.find(id);
    if (info === undefined || isDeleted(info) || isCopy(info)) continue;
    const since = Date.parse(when);
    const last = before.at(-1);
    const from =
      wroteLastIn(store, [...before, ...visited.filter((one) => one.since < since)], since) ?? last;
    if (from !== undefined)
      placeBehind(store, info, {
        before: from.info,
        evidence: from === last || from.evidence !== nextOne ? from.evidence : wroteLast,
        onConcluded,
      });
    before.push(writtenIn(store, tools, { info, source: own, since, evidence: nextOne }));
  }
}

const beganWith = 'it begins behind a /clear, in the run that began with that session';
const nextOne = 'it is the next one to begin behind a /clear, in the run that made that session';
const wroteLast = 'it begins behind a /clear, in the run that wrote in that session just before';

function placeBehind(
  store: HomeStore,
  info: SessionInfo,
  {
    before,
    evidence,
    onConcluded,
  }: { readonly before: SessionInfo; readonly evidence: string; readonly onConcluded: OnConcluded },
): void {
  const { link: placed } = info;
  if (placed?.type !== clearType && treeParentOf(info).parentId !== undefined) return;
  // Each import of the run comes by all of its sessions: nearly always they are there.
  const isThere = placed?.type === clearType && placed.derived === true && placed.parent === before.session;
  if (isThere && placed.evidence === evidence) return;
  link(store, info.id, before.id, { type: clearType, derived: true, evidence, onConcluded });
}

/** Whether it is below another session that begins as it does: a copy says what its source said of the run. */
function isCopy(info: SessionInfo): boolean {
  return info.link?.type === 'copy' && treeParentOf(info).parentId !== undefined;
}
