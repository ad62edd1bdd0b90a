import type { FamilyLine } from '@tapedeck/tape/store';
import { createNode, isDeleted, linkOf, type SessionNode, updateNode } from './node.ts';

/** The sessions and edges that the lines of a graph describe. */
export interface Folded {
  /** Nodes by session ULID, in the order of their first lines. */
  readonly nodes: ReadonlyMap<string, SessionNode>;
  /**
   * ULIDs of children by ULID of the parent, in spawn order. A parent without a node may have children here.
   */
  readonly children: ReadonlyMap<string, readonly string[]>;
  /** The ULID of the latest incarnation of each name that was not deleted. */
  readonly names: ReadonlyMap<string, string>;
  /** ULIDs by alias, and by `name~n` for the n-th incarnation of a name, without those of deleted sessions. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Number of lines that refer to an unknown session, or would make a cycle of parents. */
  readonly dangling: number;
}

/** A fold to which lines can be added. */
export interface Folding extends Folded {
  readonly nodes: Map<string, SessionNode>;
  readonly children: Map<string, string[]>;
  readonly names: Map<string, string>;
  readonly aliases: Map<string, string>;
  /** The aliases that lines have given to each session, and not taken away: a deleted one gets them again. */
  readonly given: Map<string, Set<string>>;
  dangling: number;
}

/**
 * Folds the lines of a graph, oldest first, into sessions and the edges between them.
 *
 * @example
 * ```ts
 * import { fold } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const { nodes, names } = fold(store.lineage.read());
 * console.log(nodes.get(names.get('idea') ?? '')?.kind); // subagent
 * ```
 */
export function fold(lines: Iterable<FamilyLine>): Folded {
  const folding = startFold();
  for (const line of lines) foldLine(folding, line);
  return folding;
}

/** An empty fold. */
export function startFold(): Folding {
  return {
    nodes: new Map(),
    children: new Map(),
    names: new Map(),
    aliases: new Map(),
    given: new Map(),
    dangling: 0,
  };
}

/** Adds one line to a fold. */
export function foldLine(folding: Folding, line: FamilyLine): void {
  if (dangles(folding, line)) folding.dangling += 1;
  const known = folding.nodes.get(line.session);
  const node = known === undefined ? add(folding, createNode(line)) : relink(folding, known, line);
  const updated = updateNode(node, line);
  folding.nodes.set(node.id, updated);
  nameAgain(folding, line);
  if (isDeleted(updated) !== isDeleted(node)) nameAnew(folding, updated);
}

/** Follows the other names of a session, which lines give and take. */
function nameAgain({ aliases, given }: Folding, { type, alias, session }: FamilyLine): void {
  if (alias === undefined) return;
  const own = given.get(session) ?? new Set();
  given.set(session, own);
  if (type !== 'unalias') {
    own.add(alias);
    aliases.set(alias, session);
    return;
  }
  own.delete(alias);
  if (aliases.get(alias) === session) aliases.delete(alias);
}

/** Takes the names of a session that was deleted, or gives them to one that was brought back. */
function nameAnew({ names, aliases, given }: Folding, node: SessionNode): void {
  const others = [incarnationOf(node), ...(given.get(node.id) ?? [])];
  if (!isDeleted(node)) {
    names.set(node.session, node.id);
    for (const name of others) aliases.set(name, node.id);
    return;
  }
  if (names.get(node.session) === node.id) names.delete(node.session);
  for (const name of others) if (aliases.get(name) === node.id) aliases.delete(name);
}

/** `name~n` for the n-th incarnation of a name. */
function incarnationOf({ session, tape }: SessionNode): string {
  return `${session}~${/~(\d+)$/.exec(tape)?.[1] ?? 1}`;
}

/** Whether a line refers to a session that no earlier line describes. */
function dangles({ nodes }: Folding, line: FamilyLine): boolean {
  const isUnknown = (id: string | null) => id !== null && id !== line.session && !nodes.has(id);
  const first = !nodes.has(line.session);
  switch (line.type) {
    case 'session':
    case 'fork':
      return first && isUnknown(line.parent);
    case 'merge':
    case 'discard':
      return first || isUnknown(line.into ?? line.parent);
    case 'link':
      return first || isUnknown(line.parent);
    default:
      return first;
  }
}

function add(folding: Folding, node: SessionNode): SessionNode {
  folding.names.set(node.session, node.id);
  folding.aliases.set(incarnationOf(node), node.id);
  return node.parent === undefined ? node : adopt(folding, node, node.parent);
}

/** A `link` gives a session another parent in the tree, or none; no other line does. */
function relink(folding: Folding, node: SessionNode, line: FamilyLine): SessionNode {
  if (line.type !== 'link') return node;
  const siblings = folding.children.get(node.parent ?? '');
  siblings?.splice(siblings.indexOf(node.id), 1);
  const linked = {
    ...node,
    parent: undefined,
    parentName: line.parent_session_id ?? undefined,
    link: linkOf(line),
  };
  return line.parent === null ? linked : adopt(folding, linked, line.parent);
}

/**
 * Makes an edge. If it would close a cycle, which only a forged file has, the session becomes a root instead,
 * so that walks of the graph terminate.
 */
function adopt(folding: Folding, node: SessionNode, parent: string): SessionNode {
  if (closesCycle(folding, node.id, parent)) {
    folding.dangling += 1;
    return { ...node, parent: undefined };
  }
  const siblings = folding.children.get(parent);
  if (siblings === undefined) folding.children.set(parent, [node.id]);
  else siblings.push(node.id);
  return { ...node, parent };
}

function closesCycle({ nodes, children }: Folding, id: string, parent: string): boolean {
  if (id === parent) return true;
  if (!children.has(id)) return false;
  for (let at = nodes.get(parent)?.parent; at !== undefined; at = nodes.get(at)?.parent)
    if (at === id) return true;
  return false;
}
