import { sep } from 'node:path';
import type { Entry, HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted, isObject, isSummarizer, isWhere, treeParentOf } from '@tapedeck/tape/internal';
import type { Condition, SessionQuery } from '@tapedeck/tape/store';
import { partText } from '../output/entry.ts';
import { commandText, isTyped } from '../output/local-command.ts';

/**
 * Number of a session's own first entries among which its directory and its prompt are looked for: an import has many before
 * them that are no messages.
 */
const firstMax = 100;

/** The title of a session, or the text of its first prompt, or of its task. */
export function aboutOf(store: HomeStore, info: SessionInfo): string {
  return info.title ?? promptOf(store, info);
}

/** The text of the first prompt of a session, or of its task; where there is neither, the command that was typed first. */
function promptOf(store: HomeStore, info: SessionInfo): string {
  let command = '';
  for (const entry of store.entries.read(info.id, {
    own: true,
    kind: 'message',
    to: info.base + firstMax,
  })) {
    if (!isObject(entry.payload) || entry.payload.role !== 'user') continue;
    if (isTyped(entry)) return textIn(entry);
    if (command === '') command = commandText(entry) ?? '';
  }
  const [intention] = store.entries.read(info.id, { own: true, name: 'intention', limit: 1 });
  const { payload } = intention ?? {};
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  return typeof state.next_steps === 'string' ? state.next_steps : command;
}

/** Whether a text is in the name, the title or the first prompt of a session, in either case. */
export function mentions(store: HomeStore, info: SessionInfo, text: string): boolean {
  const wanted = text.toLowerCase();
  const has = (said: string) => said.toLowerCase().includes(wanted);
  // The prompt is read last: most names and titles are at hand.
  return has(`${info.session} ${info.title ?? ''}`) || has(promptOf(store, info));
}

/** Whether a session began in a directory or below it. One that records no directory is where its parent began. */
export function beganIn(store: HomeStore, info: SessionInfo, directory: string): boolean {
  for (let at: SessionInfo | undefined = info; at !== undefined; ) {
    const directoryAt = directoryOf(store, at);
    if (directoryAt !== undefined)
      return directoryAt === directory || directoryAt.startsWith(directory + sep);
    at = at.parentId === undefined ? undefined : store.sessions.find(at.parentId);
  }
  return false;
}

/** Whether a session has a message of its own that records all that is wanted. */
export function saidWhere(store: HomeStore, info: SessionInfo, conditions: readonly Condition[]): boolean {
  for (const entry of store.entries.read(info.id, { own: true, kind: 'message' }))
    if (isWhere(entry, conditions)) return true;
  return false;
}

/** The active session with the newest message that began in a directory or below it; children and drafts of theirs do not count. */
export function newestIn(store: HomeStore, directory: string): SessionInfo | undefined {
  for (const info of store.readSessions({ kind: 'session' }))
    if (beganIn(store, info, directory)) return info;
  return undefined;
}

/** The directory that the first of a session's own entries that has one records. */
function directoryOf(store: HomeStore, { id }: SessionInfo): string | undefined {
  for (const { meta } of store.entries.read(id, { own: true, limit: firstMax }))
    if (isObject(meta.place) && typeof meta.place.cwd === 'string') return meta.place.cwd;
  return undefined;
}

function textIn({ payload }: Entry): string {
  const content = isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
  return content.map(partText).join(' ');
}

/** A session of a tree, with what is drawn before its name: `├ `, and for each ancestor whether a sibling of it follows. */
export interface Placed {
  readonly info: SessionInfo;
  readonly branch: string;
}

/** A session of a tree, with the place in the family of the one above it; -1 for the root. */
export interface Member {
  readonly info: SessionInfo;
  readonly above: number;
}

/** What the families of a tree are read with: those too that are in no list, as what is below them can be in it. */
export const inFamilies = { all: true } as const;

/** A session with its descendants, each after its parent, siblings in the order in which the store lists them. */
export function familyOf(store: HomeStore, root: SessionInfo, having: SessionQuery = {}): readonly Member[] {
  const below = store.sessions.list({ ...having, ...inFamilies, under: root.id });
  const children = Map.groupBy(
    below.filter((info) => !isSummarizer(info)),
    (info) => treeParentOf(info).parentId,
  );
  const members: Member[] = [];
  // A loop: forks can be nested deeper than calls.
  const left: Member[] = [{ info: root, above: -1 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const above = members.push(next) - 1;
    for (const info of (children.get(next.info.id) ?? []).toReversed()) left.push({ info, above });
  }
  return members;
}

/** Whether a session is in a list of all, or of those that are neither archived nor drafts. */
export function isListed(info: SessionInfo, { all }: { readonly all: boolean }): boolean {
  return !isDeleted(info) && (all || (info.lifecycle !== 'archived' && !info.ephemeral));
}

/** What is drawn of a family: the members that are wanted, in its order, each below its nearest ancestor that is wanted. */
export function drawn(
  members: readonly Member[],
  isWanted: (info: SessionInfo) => boolean,
): readonly Placed[] {
  // Of each member the nearest that is wanted: itself, or one above it.
  const nearest: number[] = [];
  const children = new Map<number, number[]>();
  for (const [at, { info, above }] of members.entries()) {
    const parent = nearest[above] ?? -1;
    nearest.push(isWanted(info) ? at : parent);
    if (nearest[at] !== at) continue;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [at]);
    else siblings.push(at);
  }
  const placed: Placed[] = [];
  const left = (children.get(-1) ?? []).map((at) => ({ at, branch: '', indent: '' })).reverse();
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { at, branch, indent } = next;
    const { info } = members[at] as Member;
    placed.push({ info, branch });
    for (const [i, child] of (children.get(at) ?? []).toReversed().entries())
      left.push({
        at: child,
        branch: `${indent}${i === 0 ? '╰ ' : '├ '}`,
        indent: `${indent}${i === 0 ? '  ' : '│ '}`,
      });
  }
  return placed;
}
