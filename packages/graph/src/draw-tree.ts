import { shown, span } from './display.ts';
import type { SessionGraph, SessionRef } from './graph.ts';
import type { SessionNode } from './node.ts';

/** The queries that a tree is drawn from. A `SessionGraph` has them, and the `graph` of a deck. */
export type TreeGraph = Pick<SessionGraph, 'roots' | 'subtree'>;

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
export function drawTree(graph: TreeGraph, ref?: SessionRef): string[] {
  if (ref === undefined) return graph.roots().flatMap((root) => drawTree(graph, root.id));
  const [top, ...below] = graph.subtree(ref);
  if (top === undefined) return [];
  const rows = [label(top.node)];
  // For each level above, whether a sibling follows.
  const open: boolean[] = [];
  for (const { depth, node, last } of below) {
    open.length = depth - 1;
    rows.push(`${open.map((more) => (more ? '│  ' : '   ')).join('')}${last ? '╰─ ' : '├─ '}${label(node)}`);
    open.push(!last);
  }
  return rows;
}

function label(node: SessionNode): string {
  const anchor = node.fromAnchor === undefined ? [] : [`⚓ ${shown(node.fromAnchor)}`];
  const merges = node.merges.map(({ type, range, intoName, seq }) => {
    const what = range === undefined ? type : `${type} ${span(range)}`;
    return intoName === undefined
      ? what
      : `${what} → ${shown(intoName)}${seq === undefined ? '' : `@${seq}`}`;
  });
  return [shown(node.session), shown(node.kind), shown(node.status), ...anchor, ...merges].join('  ');
}
