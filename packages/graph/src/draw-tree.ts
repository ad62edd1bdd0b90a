import { shown, span, targetText } from './display.ts';
import { type LineOptions, lineOf } from './drawn-line.ts';
import type { SessionGraph, SessionRef } from './graph.ts';
import {
  distinctNames,
  drawnOrigin,
  edgeText,
  goneTexts,
  type SessionNode,
  stateOf,
  undoneText,
} from './node.ts';

/** The queries that a tree is drawn from. A `SessionGraph` has them, and the `graph` of a deck. */
export type TreeGraph = Pick<SessionGraph, 'roots' | 'subtree'>;

/** Options of a tree. */
export interface TreeOptions extends LineOptions {
  /** Names that sessions outside of the graph have, too: the sessions of such a name get the names of their tapes. */
  readonly shared?: ReadonlySet<string> | undefined;
}

/**
 * Draws sessions as a tree, children in spawn order, with kind, status, source anchor and merges: all
 * sessions, or the session of `ref` and its descendants.
 * @throws GRAPH_NO_SESSION when `ref` matches no session, or several
 *
 * @example
 * ```ts
 * import { drawTree, SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * console.log(drawTree(graph).join('\n'));
 * // main  session  active
 * // ╰─ idea  subagent  active
 * ```
 */
export function drawTree(graph: TreeGraph, ref?: SessionRef, options: TreeOptions = {}): string[] {
  const refs = ref === undefined ? graph.roots().map(({ id }) => id) : [ref];
  const places = refs.flatMap((one) => graph.subtree(one));
  const nodes = distinctNames(
    places.map(({ node }) => node),
    options.shared,
  );
  const rows: string[] = [];
  // For each level above, whether a sibling follows.
  const open: boolean[] = [];
  for (const [i, node] of nodes.entries()) {
    const { depth = 0, last = true } = places[i] ?? {};
    open.length = Math.max(0, depth - 1);
    const above = open.map((more) => (more ? '│  ' : '   ')).join('');
    const before = depth === 0 ? '' : `${above}${last ? '╰─ ' : '├─ '}`;
    rows.push(lineOf(before, { label: label(node), node }, options));
    if (depth > 0) open.push(!last);
  }
  return rows;
}

function label(node: SessionNode): string {
  const { anchor: from, link: edge } = drawnOrigin(node);
  const anchor = from === undefined ? [] : [`⚓ ${shown(from)}`];
  const link = edge === undefined ? [] : [shown(edgeText(edge))];
  const merges = node.merges.map((merge) => {
    const { type, range } = merge;
    const what = range === undefined ? type : `${type} ${span(range)}`;
    return `${what}${targetText(merge)}${undoneText(merge)}`;
  });
  const facts = [shown(node.kind), shown(stateOf(node)), ...goneTexts(node)];
  return [shown(node.session), ...facts, ...anchor, ...link, ...merges].join('  ');
}
