import { isDeepStrictEqual } from 'node:util';
import { note, type SessionInfo, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import type { LinkRequest, SessionLink } from '@tapedeck/tape/store';
import { appendBeside } from './beside.ts';
import { spineOf } from './change.ts';
import { copiesIn } from './copies.ts';
import { continuedFrom, copyEvent, isResumed } from './copy-notes.ts';
import { importedIn } from './imported.ts';
import { sessionOf } from './origins.ts';
import type { ConversationPlan, DerivedEdge, ImportPlan } from './plan.ts';
import { isRefusal } from './refusal.ts';

/** The session that a conversation of a plan is, and whether it was made just now. */
interface Placed {
  readonly session: string;
  readonly created: boolean;
}

/** The edges of conversations that are concluded from more than a place in a file, by their types. */
const between: ReadonlySet<DerivedEdge['why']> = new Set(['cleared', 'workflow', 'subagent']);

/** Whether an edge is between two conversations, and not inside of one. */
export function isBetween({ why }: DerivedEdge): boolean {
  return between.has(why);
}

/**
 * Gives the sessions of a plan their places in the tree, where forks do not say them: those that begin behind a `/clear`,
 * those that came before their parent was known, and those that are copies of each other. What a person has moved stays.
 */
export function linkSessions(
  store: SqliteTapeStore,
  plan: ImportPlan,
  sessionsOf: (key: string) => Placed | undefined,
  { copies }: { readonly copies: boolean },
): void {
  const derived = new Map(plan.derived.filter(isBetween).map((edge) => [edge.of, edge]));
  for (const conversation of plan.conversations) {
    const { key, kind, parent } = conversation;
    const placed = sessionsOf(key);
    if (placed === undefined) continue;
    const { session } = placed;
    if (kind === 'main' && copies) placeCopy(store, plan, placed);
    if (kind === 'main') placeExported(store, plan, session);
    const above = parent === undefined ? undefined : sessionsOf(parent.key)?.session;
    if (above !== undefined) placeBelow(store, { conversation, session, above }, derived.get(key));
  }
}

function placeBelow(
  store: SqliteTapeStore,
  {
    conversation: { kind, parent },
    session,
    above,
  }: { readonly conversation: ConversationPlan; readonly session: string; readonly above: string },
  edge: DerivedEdge | undefined,
): void {
  if (edge !== undefined) {
    const { evidence } = edge;
    const type = edge.why === 'cleared' ? 'clear' : edge.why;
    link(store, session, above, { type, derived: true, evidence });
    return;
  }
  const info = store.sessions.find(session);
  if (info !== undefined && kind === 'branch') placeBranch(store, info, above);
  if (kind !== 'subagent' || info === undefined) return;
  if (treeParentOf(info).parent === above && info.link?.derived !== true) return;
  // It was forked from what stood for its parent then, or its call was not known.
  link(store, session, above, {
    type: kind,
    ...(parent?.call !== undefined && { evidence: `call ${parent.call}` }),
  });
}

/** Puts a branch under another conversation of its source, where that leads to it by now: one that was left since. */
function placeBranch(store: SqliteTapeStore, info: SessionInfo, above: string): void {
  const copies = copiesIn(store);
  const { parent, parentId = '' } = treeParentOf(info);
  const source = copies.sourceOf(info.id);
  const isOwn = source !== undefined && copies.sourceOf(parentId) === source;
  const aboveId = store.sessions.find(above)?.id ?? '';
  if (parent !== above && isOwn && copies.sourceOf(aboveId) === source)
    link(store, info.session, above, { type: 'branch' });
}

/** Puts a session under the one that was exported, where it has a part of that and could not be forked from it. */
function placeExported(store: SqliteTapeStore, { exportOf }: ImportPlan, session: string): void {
  const info = store.sessions.find(session);
  const source = exportOf === undefined ? undefined : store.sessions.find(exportOf);
  if (info === undefined || source === undefined || source.id !== exportOf || info.id === exportOf) return;
  if (info.link !== undefined || treeParentOf(info).parent !== undefined) return;
  const evidence = 'it has records that an export wrote, but not all that precedes them';
  link(store, session, source.session, { type: 'copy', derived: true, evidence });
}

/** Puts a copy under its source, and the copies of a source under that, whichever of them was imported first. */
function placeCopy(
  store: SqliteTapeStore,
  { format, session: own, copyOf }: ImportPlan,
  { session, created }: Placed,
): void {
  const info = store.sessions.find(session);
  if (info === undefined) return;
  if (copyOf !== undefined) {
    noteCopy(store, info, copyOf);
    const source = sessionOf(store, { format, session: copyOf });
    if (source !== undefined && treeParentOf(info).parent !== source)
      link(store, session, source, { type: 'copy' });
  }
  // What is neither new nor a fork has found its copies before, or was found by them.
  const isPlaced = !created && info.parentId === undefined;
  const copies = isPlaced ? [] : [...copiesIn(store).of(own)].flatMap((id) => store.sessions.find(id) ?? []);
  for (const copy of copies) {
    if (treeParentOf(copy).parentId === info.id) continue;
    // It was forked from one of them, which came first.
    if (isBelow(store, session, copy.id)) {
      const exported = store.sessions.find(continuedFrom(store, info.id) ?? '')?.session;
      link(store, session, exported ?? null, { type: 'copy' });
    }
    link(store, copy.session, session, { type: 'copy' });
  }
  if (created && isResumed(store, info.id)) placeResumed(store, info);
  else placeAlike(store, info);
}

/**
 * Puts a session under the one from which it was forked, since it begins with that under other ids: the other way round
 * where it has nothing else, and that has more.
 */
function placeResumed(store: SqliteTapeStore, { session, base, parent }: SessionInfo): void {
  const other = parent === undefined ? undefined : store.sessions.find(parent);
  if (other === undefined) return;
  const [own, its] = [session, other.session].map((one) => spineOf(importedIn(store, one).shown));
  const goesOn = (shown: typeof own) => shown?.some(({ seq }) => seq > base) === true;
  const common = own?.filter(({ seq }) => seq <= base).length;
  const evidence = `both begin with the same ${common} entries, under other ids`;
  const edge = { type: 'copy', derived: true, evidence };
  if (goesOn(own) || !goesOn(its) || treeParentOf(other).parent !== undefined)
    link(store, session, other.session, edge);
  else {
    link(store, session, null, edge);
    link(store, other.session, session, edge);
  }
}

/**
 * Puts the sessions whose sources do not say of which they are copies under the likeliest, as far as what was written of their
 * family changes that.
 */
function placeAlike(store: SqliteTapeStore, { id }: SessionInfo): void {
  const copies = copiesIn(store);
  const first = copies.firstOf(id);
  if (first === undefined || copies.mains(first).length < 2) return;
  const { family, alike } = copies.family(first) ?? {};
  for (const one of alike?.places() ?? []) {
    if (copies.isPlaced(one.id)) continue;
    const info = store.sessions.find(one.id);
    const { parentId } = treeParentOf(info ?? {});
    // What is below another session than those that begin alike is there for another reason.
    const isFree = parentId === undefined || family?.member(parentId) !== undefined;
    if (info === undefined || !isFree || (parentId === undefined && one.source === undefined)) continue;
    const { source = null, common } = one;
    const evidence = source === null ? 'it went on first' : `both begin with the same ${common} entries`;
    link(store, one.session, source, { type: 'copy', derived: true, evidence });
  }
}

/** Whether a session is below another one in the tree. */
function isBelow(store: SqliteTapeStore, session: string, id: string): boolean {
  const seen = new Set<string>();
  for (let at = store.sessions.find(session); at !== undefined; ) {
    const { parentId } = treeParentOf(at);
    if (parentId === id) return true;
    // A forged file can have parents in a circle.
    if (seen.has(at.id)) return false;
    seen.add(at.id);
    at = parentId === undefined ? undefined : store.sessions.find(parentId);
  }
  return false;
}

function noteCopy(store: SqliteTapeStore, { id }: SessionInfo, session: string): void {
  const key = `${copyEvent}:${session}`;
  const said = [...store.entries.read(id, { own: true, name: copyEvent })].some((one) =>
    one.key?.endsWith(key),
  );
  if (!said) appendBeside(store, id, [{ ...note(copyEvent, { session }), key }]);
  copiesIn(store).add(session, id);
}

function edgeOf({ parent, type, derived, evidence }: SessionLink): readonly unknown[] {
  return [parent ?? null, type, derived === true, evidence];
}

/** Makes an edge, unless a person has moved the session. */
function link(store: SqliteTapeStore, child: string, parent: string | null, request: LinkRequest): void {
  const placed = store.sessions.find(child)?.link;
  if (placed?.type === 'moved' && placed.derived !== true) return;
  const { type, derived = false, evidence } = request;
  const wanted = [parent, type, derived, evidence];
  // Nearly always it is there: no transaction is needed then.
  if (placed !== undefined && isDeepStrictEqual(wanted, edgeOf(placed))) return;
  try {
    store.lineage.link(child, parent, request);
  } catch (error) {
    // What was moved by hand can be in the way.
    const isInTheWay = error instanceof TapeError && error.code === 'TAPE_CONFLICT';
    if (!isInTheWay && !isRefusal(error)) throw error;
  }
}
