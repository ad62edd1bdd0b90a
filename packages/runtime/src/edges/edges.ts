/**
 * The tree of an import: `edges.ts` links sessions, `fork-of.ts` says where a conversation is forked, `merge-ended.ts`
 * merges subagents where their results came back, and `merge-again.ts` those again whose merge a rewind hid. `cleared.ts` joins
 * the sessions of a run that cleared (`wrote-last.ts`), `cleared-by-program.ts` those of a program by their times
 * (`clear-pairs.ts`), and `misplaced.ts` and `returned.ts` delete sessions that have another place now, but for those of another
 * copy of the file (`other-way.ts`). `derived.ts` notes edges that no record states; `titles.ts` notes the titles, and
 * `concluded-title.ts` those that no source gives. Imports `copies` and what lies below.
 */

import { type HomeStore, note, type SessionInfo } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import type { LinkRequest } from '@tapedeck/tape/store';
import type { Likely } from '../copies/alike.ts';
import { copiesIn } from '../copies/copies.ts';
import { resemblanceIn } from '../copies/resemblance.ts';
import { continuedFrom, copyEvent } from '../imported/copy-notes.ts';
import { importedIn } from '../imported/imported.ts';
import { sessionWithId } from '../imported/of-realm.ts';
import { sessionOf } from '../imported/origins.ts';
import type { ConversationPlan, DerivedEdge, ImportPlan } from '../plan/plan.ts';
import { appendBeside } from './beside.ts';
import { clearType, noteRuns, placeAgain, placeRuns } from './cleared.ts';
import { noteClears, placeClearAgain, placeClears } from './cleared-by-program.ts';
import { titleCopy, titleShown } from './concluded-title.ts';
import { callAt } from './fork-of.ts';
import { link, type OnConcluded } from './link.ts';
import { parentSession } from './parent-session.ts';

/** The session that a conversation of a plan is, whether it was made just now, and how much it got. */
interface Placed {
  readonly session: string;
  readonly created: boolean;
  readonly added: number;
  /** Whether the source has less of it than the session, as an older copy does. */
  readonly isBehind?: boolean;
}

/** Which conversations of a plan get their places, and whether the copies of them do. */
interface Linked extends Pick<ImportPlan, 'conversations'> {
  readonly copies: boolean;
  readonly onConcluded: OnConcluded;
}

/** A conversation of a plan, and the session that its parent is. */
interface Below {
  readonly conversation: ConversationPlan;
  readonly above: string;
}

/** The edges of conversations that are concluded from more than a place in a file, by their types. */
const between: ReadonlySet<DerivedEdge['why']> = new Set(['cleared', 'workflow', 'subagent']);

/** Whether an edge is between two conversations, and not inside of one. */
export function isBetween({ why }: DerivedEdge): boolean {
  return between.has(why);
}

/**
 * Gives the sessions of some conversations of a plan their places in the tree, where forks do not say them: those that begin
 * behind a `/clear`, those that came before their parent was known, or before the call that started them, and those that are
 * copies of each other. What a person has moved stays.
 */
export function linkSessions(
  store: HomeStore,
  plan: ImportPlan,
  sessionsOf: (key: string) => Placed | undefined,
  { conversations, copies, onConcluded }: Linked,
): void {
  const derived = new Map(plan.derived.filter(isBetween).map((edge) => [edge.of, edge]));
  const isOlder = plan.conversations.some(({ key }) => sessionsOf(key)?.isBehind === true);
  for (const conversation of conversations) {
    const { key, kind, parent } = conversation;
    const placed = sessionsOf(key);
    if (placed === undefined) continue;
    const { session } = placed;
    if (kind === 'main' && copies) {
      placeCopy(store, plan, placed, onConcluded);
      noteRuns(store, plan, session);
      noteClears(store, plan, session);
    }
    if (kind === 'main') placeExported(store, plan, session, onConcluded);
    if (kind === 'cleared') titleShown(store, session);
    const written = parent === undefined ? undefined : sessionsOf(parent.key)?.session;
    // An older copy knows less of where its sessions belong.
    if (written === undefined || (isOlder && !placed.created)) continue;
    // A new branch is below the way that left it, though it may be forked from another one that has all of it.
    const isNewBranch = kind === 'branch' && placed.created;
    const above = isNewBranch ? written : parentSession(store, plan, conversation, { session, written });
    const edge = derived.get(key);
    placeBelow(store, { conversation, session, above }, edge && { ...edge, onConcluded });
  }
  // A branch may have been below what is a copy of it.
  const main = conversations.find(({ kind }) => kind === 'main');
  const placed = main && sessionsOf(main.key);
  if (placed === undefined || !copies) return;
  placeAlike(store, placed.session, onConcluded);
  // What begins as another session does is below that, and the first of them where its run cleared it.
  placeRuns(store, plan, onConcluded);
  placeClears(store, plan, onConcluded);
}

function placeBelow(
  store: HomeStore,
  { conversation, session, above }: Below & { readonly session: string },
  edge: (DerivedEdge & { readonly onConcluded: OnConcluded }) | undefined,
): void {
  const { kind } = conversation;
  const info = store.sessions.find(session);
  const start =
    kind === 'subagent' && info !== undefined ? startOf(store, { conversation, above }, info) : {};
  if (edge !== undefined) {
    const { evidence, onConcluded } = edge;
    const type = edge.why === 'cleared' ? clearType : edge.why;
    link(store, session, above, { type, derived: true, evidence, onConcluded, ...start });
    return;
  }
  if (info !== undefined && kind === 'branch') placeBranch(store, info, above);
  if (kind !== 'subagent' || info === undefined) return;
  const isThere = treeParentOf(info).parent === above && info.link?.derived !== true;
  const { call = info.spawnCall, seq } = start;
  if (isThere && seq === undefined && call === info.spawnCall) return;
  // It was forked from what stood for its parent then, or its call was not known, or not yet there.
  link(store, session, above, { type: kind, ...start });
}

/**
 * The call that started a subagent, and the position of its parent before that, unless its fork is there: it may have been
 * imported before its parent.
 */
function startOf(
  store: HomeStore,
  { conversation: { parent }, above }: Below,
  { link: placed, parent: forkedFrom, fromAnchor, floor, base, spawnCall }: SessionInfo,
): Pick<LinkRequest, 'call' | 'seq'> {
  const call = parent?.call;
  if (call === undefined) return {};
  if (placed?.seq !== undefined && placed.parent === above && placed.call === call)
    return { call, seq: placed.seq };
  const isAtCall = fromAnchor !== undefined || base > floor;
  if (isAtCall && forkedFrom === above && spawnCall === call) return {};
  const seq = base > floor ? undefined : callAt(importedIn(store, above).shown, call);
  return { call, ...(seq !== undefined && { seq }) };
}

/** Puts a branch under the conversation of its source that leads to it by now, of whichever session it was forked. */
function placeBranch(store: HomeStore, info: SessionInfo, above: string): void {
  const copies = copiesIn(store);
  const source = copies.sourceOf(info.id);
  const aboveId = store.sessions.find(above)?.id ?? '';
  const isOwn = source !== undefined && copies.sourceOf(aboveId) === source;
  if (isOwn && treeParentOf(info).parent !== above) link(store, info.id, above, { type: 'branch' });
}

/** Puts a session under the one that was exported, where it has a part of that and could not be forked from it. */
function placeExported(
  store: HomeStore,
  { exportOf }: ImportPlan,
  session: string,
  onConcluded: OnConcluded,
): void {
  const info = store.sessions.find(session);
  const source = sessionWithId(store, exportOf);
  if (info === undefined || source === undefined || info.id === exportOf) return;
  if (info.link !== undefined || treeParentOf(info).parent !== undefined) return;
  const evidence = 'it has records that an export wrote, but not all that precedes them';
  link(store, session, source.id, { type: 'copy', derived: true, evidence, onConcluded });
}

/** Puts a copy under its source, and the copies of a source under that, whichever of them was imported first. */
function placeCopy(
  store: HomeStore,
  { format, session: own, copyOf }: ImportPlan,
  { session, created }: Placed,
  onConcluded: OnConcluded,
): void {
  const info = store.sessions.find(session);
  if (info === undefined) return;
  if (copyOf !== undefined) {
    noteSource(store, info, copyOf);
    const source = sessionOf(store, { format, session: copyOf });
    if (source !== undefined && treeParentOf(info).parentId !== source.id)
      placeUnder(store, info, source, onConcluded);
  }
  // What is neither new nor a fork has found its copies before, or was found by them.
  const isPlaced = !created && info.parentId === undefined;
  const copies = isPlaced ? [] : [...copiesIn(store).of(own)].flatMap((id) => store.sessions.find(id) ?? []);
  if (copies.length === 0) return;
  // The one under which each copy puts itself, also where this is another one that was made beside it.
  const first = sessionOf(store, { format, session: own }) ?? info;
  for (const copy of copies)
    if (treeParentOf(copy).parentId !== first.id) placeUnder(store, copy, first, onConcluded);
}

/**
 * Puts a copy under the source that it names. That, or something above it, may be below the copy, which came first: there
 * it stays only if all of them are branches, or are where their sources say.
 */
function placeUnder(
  store: HomeStore,
  copy: SessionInfo,
  source: SessionInfo,
  onConcluded: OnConcluded,
): void {
  const path = pathBelow(store, source.id, copy.id);
  if (path !== undefined) {
    const copies = copiesIn(store);
    const isFirm = (one: SessionInfo) => {
      const { parentId = '' } = treeParentOf(one);
      const own = copies.sourceOf(one.id);
      return copies.isCopyOf(one.id, parentId) || (own !== undefined && own === copies.sourceOf(parentId));
    };
    const loose = path.findLast((one) => !isFirm(one));
    if (loose === undefined) return;
    const continued = store.sessions.find(continuedFrom(store, loose.id) ?? '');
    const exported = continued === undefined || isDeleted(continued) ? undefined : continued.id;
    // What no record says gives way to what later files say.
    const evidence = 'a copy of it was imported before it';
    if (exported !== undefined) link(store, loose.id, exported, { type: 'copy' });
    else {
      link(store, loose.id, null, { type: 'copy', derived: true, evidence, onConcluded });
      placeAgain(store, loose, onConcluded);
      placeClearAgain(store, loose, onConcluded);
    }
  }
  link(store, copy.id, source.id, { type: 'copy' });
}

/** Puts the sessions whose sources do not say of which they are copies under the likeliest, and gives copies their titles. */
function placeAlike(store: HomeStore, session: string, onConcluded: OnConcluded): void {
  const id = store.sessions.find(session)?.id;
  if (id === undefined) return;
  const resemblance = resemblanceIn(store);
  const places = resemblance.placesAround(id);
  if (places.length === 0) titleShown(store, session);
  const first: SessionInfo[] = [];
  for (const one of places) {
    titleCopy(store, one);
    const info = store.sessions.find(one.id);
    if (info === undefined || copiesIn(store).isPlaced(one.id)) continue;
    const { parentId } = treeParentOf(info);
    const source = one.source && store.sessions.find(one.source.id);
    // What is below another session than those that begin alike is there for another reason. That its run cleared it is one for
    // the first of them alone: its copies say so, too.
    const isFree =
      info.link?.type === clearType
        ? source !== undefined
        : parentId === undefined || resemblance.has(parentId);
    if (!isFree || (parentId === undefined && source === undefined)) continue;
    const evidence = one.source === undefined ? 'it went on first' : evidenceOf(one.source);
    link(store, info.id, source?.id ?? null, { type: 'copy', derived: true, evidence, onConcluded });
    if (source === undefined) first.push(info);
  }
  for (const info of first) {
    placeAgain(store, info, onConcluded);
    placeClearAgain(store, info, onConcluded);
  }
}

function evidenceOf({ common, before }: NonNullable<Likely['source']>): string {
  return before === 0
    ? `both begin with the same ${common} entries`
    : `it begins with ${common} entries of that, before which that has ${before}`;
}

/** A session and those above it that are below another one in the tree; undefined where it is not. */
function pathBelow(store: HomeStore, of: string, id: string): readonly SessionInfo[] | undefined {
  const path: SessionInfo[] = [];
  const seen = new Set<string>();
  // A forged file can have parents in a circle.
  for (let at = store.sessions.find(of); at !== undefined && !seen.has(at.id); ) {
    seen.add(at.id);
    path.push(at);
    const { parentId } = treeParentOf(at);
    if (parentId === id) return path;
    at = parentId === undefined ? undefined : store.sessions.find(parentId);
  }
  return undefined;
}

function noteSource(store: HomeStore, { id }: SessionInfo, session: string): void {
  const key = `${copyEvent}:${session}`;
  const said = [...store.entries.read(id, { own: true, name: copyEvent })].some((one) =>
    one.key?.endsWith(key),
  );
  if (!said) appendBeside(store, id, [{ ...note(copyEvent, { session }), key }]);
  copiesIn(store).add(session, id);
}
