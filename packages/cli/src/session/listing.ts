import { sep } from 'node:path';
import type { Entry, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { isObject, isWhere, treeParentOf } from '@tapedeck/tape/internal';
import type { Condition } from '@tapedeck/tape/store';
import { partText } from '../output/entry.ts';
import { commandText, isTyped } from '../output/local-command.ts';

/**
 * Number of a session's own first entries among which its directory and its prompt are looked for: an import has many before
 * them that are no messages.
 */
const firstMax = 100;

/** The title of a session, or the text of its first prompt, or of its task. */
export function aboutOf(store: SqliteTapeStore, info: SessionInfo): string {
  return info.title ?? promptOf(store, info);
}

/** The text of the first prompt of a session, or of its task; where there is neither, the command that was typed first. */
function promptOf(store: SqliteTapeStore, info: SessionInfo): string {
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
export function mentions(store: SqliteTapeStore, info: SessionInfo, text: string): boolean {
  const wanted = text.toLowerCase();
  const has = (said: string) => said.toLowerCase().includes(wanted);
  // The prompt is read last: most names and titles are at hand.
  return has(`${info.session} ${info.title ?? ''}`) || has(promptOf(store, info));
}

/** Whether a session began in a directory or below it. One that records no directory is where its parent began. */
export function beganIn(store: SqliteTapeStore, info: SessionInfo, directory: string): boolean {
  for (let at: SessionInfo | undefined = info; at !== undefined; ) {
    const directoryAt = directoryOf(store, at);
    if (directoryAt !== undefined)
      return directoryAt === directory || directoryAt.startsWith(directory + sep);
    at = at.parentId === undefined ? undefined : store.sessions.find(at.parentId);
  }
  return false;
}

/** Whether a session has a message of its own that records all that is wanted. */
export function saidWhere(
  store: SqliteTapeStore,
  info: SessionInfo,
  conditions: readonly Condition[],
): boolean {
  for (const entry of store.entries.read(info.id, { own: true, kind: 'message' }))
    if (isWhere(entry, conditions)) return true;
  return false;
}

/** The active session with the newest message that began in a directory or below it; children and drafts of theirs do not count. */
export function newestIn(store: SqliteTapeStore, directory: string): SessionInfo | undefined {
  for (const info of store.readSessions({ kind: 'session' }))
    if (beganIn(store, info, directory)) return info;
  return undefined;
}

/** The directory that the first of a session's own entries that has one records. */
function directoryOf(store: SqliteTapeStore, { id }: SessionInfo): string | undefined {
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
  /** How many sessions of the tree are above it. */
  readonly depth: number;
}

/** A session with its descendants, each after its parent, siblings in the order in which they are given. */
export function withDescendants(root: SessionInfo, below: readonly SessionInfo[]): readonly Placed[] {
  const children = Map.groupBy(below, (info) => treeParentOf(info).parentId);
  const placed: Placed[] = [];
  // A loop: forks can be nested deeper than calls.
  const left = [{ info: root, branch: '', indent: '', depth: 0 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { info, branch, indent, depth } = next;
    placed.push({ info, branch, depth });
    for (const [i, child] of (children.get(info.id) ?? []).toReversed().entries())
      left.push({
        info: child,
        branch: `${indent}${i === 0 ? '╰ ' : '├ '}`,
        indent: `${indent}${i === 0 ? '  ' : '│ '}`,
        depth: depth + 1,
      });
  }
  return placed;
}
