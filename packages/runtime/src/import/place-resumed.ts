import type { Entry, HomeStore, SessionInfo } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import type { LinkRequest } from '@tapedeck/tape/store';
import { spineOf } from './change.ts';
import { copiesIn } from './copies.ts';
import { isResumed } from './copy-notes.ts';
import { firstAnswerIn } from './first-said.ts';
import { importedIn, requestOf } from './imported.ts';

/** An edge between two sessions, of which the upper one can be a root. */
interface CopyEdge {
  readonly child: string;
  readonly parent: string | null;
  readonly request: LinkRequest;
}

/** A session that begins with the same entries as another one, under other ids. */
interface Likeness {
  readonly other: SessionInfo;
  /** How many entries both begin with. */
  readonly common: number;
  /** When each of them went on; undefined for one that has nothing else. */
  readonly own: number | undefined;
  readonly its: number | undefined;
}

/** How an edge ends that says why one of two sessions is taken for a copy under other ids. */
const underOtherIds = 'under other ids';

/**
 * The edges between a session and the one with which it begins under other ids: it is below that, unless it alone is no copy by
 * name, has nothing else, or went on first. Empty for a session that has another place.
 */
export function resumedEdges(store: HomeStore, info: SessionInfo): readonly CopyEdge[] {
  // Where its records name its source, that says more.
  const found = copiesIn(store).isPlaced(info.id) ? undefined : likenessOf(store, info);
  if (found === undefined) return [];
  const { other, common, own, its } = found;
  const evidence = `both begin with the same ${common} entries, ${underOtherIds}`;
  const request = { type: 'copy', derived: true, evidence };
  const copies = copiesIn(store);
  // It may be a branch.
  const main = store.sessions.find(copies.mainOf(other.id) ?? '') ?? other;
  const isSource = copies.isCopy(main.id) && !copies.isCopy(info.id);
  const isFirst = isSource || (main.id === other.id && isBefore([own, info.session], [its, other.session]));
  const above = treeParentOf(main).parentId;
  const [upper, lower] = isFirst && (above === undefined || above === info.id) ? [info, main] : [other, info];
  // The upper one may be below the other by now.
  const root = { child: upper.session, parent: null, request };
  const isTurned = upper === info || above === info.id;
  return [...(isTurned ? [root] : []), { child: lower.session, parent: upper.session, request }];
}

/** Whether of two sessions the first one is the source: one that did not go on, or went on first. */
function isBefore(
  [own, name]: readonly [number | undefined, string],
  [its, other]: readonly [number | undefined, string],
): boolean {
  const [a, b] = [own ?? Number.NEGATIVE_INFINITY, its ?? Number.NEGATIVE_INFINITY];
  return a === b ? name < other : a < b;
}

function likenessOf(store: HomeStore, info: SessionInfo): Likeness | undefined {
  if (isResumed(store, info.id)) {
    const other = store.sessions.find(info.parentId ?? '');
    return other && comparedTo(store, info, other);
  }
  // What was read before its first answer could not be known as a copy.
  const { parentId, link } = info;
  const isFree = link === undefined || link.evidence?.endsWith(underOtherIds) === true;
  if (parentId !== undefined || !isFree) return undefined;
  const answer = firstAnswerIn(store, info.id);
  const request = answer && requestOf(answer);
  if (request === undefined) return undefined;
  const copies = copiesIn(store);
  const [source, first] = [copies.sourceOf(info.id), copies.firstOf(info.id)];
  let best: Likeness | undefined;
  for (const id of copies.answeredFirst(request)) {
    // Some proxies give one id to all requests: only what begins alike is read.
    if (copies.sourceOf(id) === source || !isCopy(firstIn(store, info.id), firstIn(store, id))) continue;
    const other = store.sessions.find(id);
    if (other?.lifecycle !== 'active' || copies.firstOf(id) === first) continue;
    const found = comparedTo(store, info, other);
    const isWithAnswer = found.common > 0 && importedIn(store, id).requests.has(request);
    if (isWithAnswer && found.common > (best?.common ?? 1)) best = found;
  }
  return best;
}

function comparedTo(store: HomeStore, info: SessionInfo, other: SessionInfo): Likeness {
  const [own, its] = [shownIn(store, info.id), shownIn(store, other.id)];
  let common = 0;
  while (common < own.length && common < its.length && isCopy(own[common], its[common])) common += 1;
  return { other, common, own: timeOf(own[common]), its: timeOf(its[common]) };
}

function firstIn(store: HomeStore, id: string): Entry | undefined {
  const [first] = store.entries.read(id, { kind: 'message', limit: 1 });
  return first;
}

/** The entries of the import that a session shows. */
function shownIn(store: HomeStore, id: string): readonly Entry[] {
  const shown = new Set(spineOf(importedIn(store, id).shown).map(({ seq }) => seq));
  return [...store.entries.read(id)].filter(({ seq }) => shown.has(seq));
}

function timeOf(entry: Entry | undefined): number | undefined {
  if (entry === undefined) return undefined;
  const time = Date.parse(String(entry.meta.timestamp));
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
}

/** Whether two entries say the same at the same time. */
function isCopy(one: Entry | undefined, other: Entry | undefined): boolean {
  if (one === undefined || other === undefined || one.kind !== other.kind) return false;
  const isSame = one.name === other.name && one.mark === other.mark;
  const isSameTime = one.meta.timestamp === other.meta.timestamp && requestOf(one) === requestOf(other);
  return isSame && isSameTime && JSON.stringify(one.payload) === JSON.stringify(other.payload);
}
