import { drawGraph, openSessionGraph } from '@tapedeck/graph';
import type { SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../verb.ts';
import { safe } from './safe.ts';

/**
 * The lanes of one session: it and all that came from it, from the graph file, with the session's own anchors told
 * after them.
 */
export function drawLog(store: SqliteTapeStore, { home, io, color }: Context, name: string): string[] {
  const graph = openSessionGraph(home.graph);
  const id = store.find(name)?.id ?? name;
  const nodes =
    graph.find(id) === undefined
      ? []
      : [...graph.ancestors(id), ...graph.subtree(id).map(({ node }) => node)];
  const rows = drawGraph(nodes, { color, ...(io.isTerminal && { width: io.columns }) });
  const anchors = [...store.read(name, { kind: 'anchor' })].filter(
    ({ name: anchor = '' }) => !/^(?:session|fork|merge)\/|^intention$/.test(anchor),
  );
  return [
    ...rows,
    ...anchors.map((a) =>
      safe(`⚓ ${a.session}@${a.seq} ${a.name}${a.mark === 'boundary' ? ' (handoff)' : ''}`),
    ),
  ];
}
