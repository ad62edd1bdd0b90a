import type { LineageLine } from '@tapedeck/tape';
import { createNode, type SessionNode, updateNode } from './node.ts';

/** What the lines of a graph amount to. */
export interface Folded {
  /** By session ULID, in the order of the lines that made them known. */
  readonly nodes: ReadonlyMap<string, SessionNode>;
  /** By the parent's ULID, in spawn order. A parent without a node of its own may have children here. */
  readonly children: ReadonlyMap<string, readonly string[]>;
  /** The latest incarnation of each name. */
  readonly names: ReadonlyMap<string, string>;
  /** Other words for sessions: aliases, and `name~n` for the n-th incarnation of a name. */
  readonly aliases: ReadonlyMap<string, string>;
  /** How many lines refer to a session that no line before made known, or make a circle of parents. */
  readonly dangling: number;
}

/** A fold under way. */
export interface Folding extends Folded {
  readonly nodes: Map<string, SessionNode>;
  readonly children: Map<string, string[]>;
  readonly names: Map<string, string>;
  readonly aliases: Map<string, string>;
  dangling: number;
}

/** Folds the lines of a graph, oldest first, into sessions and the edges between them. */
export function fold(lines: Iterable<LineageLine>): Folded {
  const folding = startFold();
  for (const line of lines) foldLine(folding, line);
  return folding;
}

/** The fold of no line. */
export function startFold(): Folding {
  return { nodes: new Map(), children: new Map(), names: new Map(), aliases: new Map(), dangling: 0 };
}

/** Goes on with a fold by one line. */
export function foldLine(folding: Folding, line: LineageLine): void {
  if (dangles(folding, line)) folding.dangling += 1;
  const known = folding.nodes.get(line.session);
  const node = known === undefined ? add(folding, createNode(line)) : relink(folding, known, line);
  folding.nodes.set(node.id, updateNode(node, line));
  if (line.alias !== undefined) folding.aliases.set(line.alias, node.id);
}

/** Whether a line refers to a session of which nothing has been told. */
function dangles({ nodes }: Folding, line: LineageLine): boolean {
  const untold = (id: string | null) => id !== null && id !== line.session && !nodes.has(id);
  const first = !nodes.has(line.session);
  switch (line.type) {
    case 'session':
    case 'fork':
      return first && untold(line.parent);
    case 'merge':
    case 'discard':
      return first || untold(line.into ?? line.parent);
    case 'link':
      return first || untold(line.parent);
    default:
      return first;
  }
}

function add(folding: Folding, node: SessionNode): SessionNode {
  folding.names.set(node.session, node.id);
  folding.aliases.set(`${node.session}~${/~(\d+)$/.exec(node.tape)?.[1] ?? 1}`, node.id);
  return node.parent === undefined ? node : adopt(folding, node, node.parent);
}

/** A `link` gives a parent to a session that has none; no line changes the parent of one that has. */
function relink(folding: Folding, node: SessionNode, line: LineageLine): SessionNode {
  if (line.type !== 'link' || line.parent === null || node.parent !== undefined) return node;
  const linked = {
    ...node,
    parentName: line.parent_session_id ?? undefined,
    fromAnchor: line.from_anchor ?? undefined,
  };
  return adopt(folding, linked, line.parent);
}

/**
 * Makes an edge, unless it would close a circle, as only a forged file has one: then the session becomes a
 * root. So whoever walks the graph comes to an end.
 */
function adopt(folding: Folding, node: SessionNode, parent: string): SessionNode {
  if (closesCircle(folding, node.id, parent)) {
    folding.dangling += 1;
    return { ...node, parent: undefined };
  }
  const siblings = folding.children.get(parent);
  if (siblings === undefined) folding.children.set(parent, [node.id]);
  else siblings.push(node.id);
  return { ...node, parent };
}

function closesCircle({ nodes, children }: Folding, id: string, parent: string): boolean {
  if (id === parent) return true;
  if (!children.has(id)) return false;
  for (let at = nodes.get(parent)?.parent; at !== undefined; at = nodes.get(at)?.parent)
    if (at === id) return true;
  return false;
}
