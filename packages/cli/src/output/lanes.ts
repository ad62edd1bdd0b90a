import { drawGraph, type SessionGraph } from '@tapedeck/graph';
import type { HomeStore, Seq } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { lineOptions } from './lineage.ts';

/** Draws a session and its descendants, with their anchors. */
export function drawLog(
  graph: SessionGraph,
  { store, session }: { readonly store: HomeStore; readonly session: string },
  context: Context,
): string[] {
  const nodes = graph.find(session) === undefined ? [] : graph.subtree(session).map(({ node }) => node);
  const marks = nodes.flatMap(({ id }) => {
    const ranges = store.views.ranges(id);
    const isUndone = (seq: Seq) => ranges.find(({ to }) => seq <= to)?.hiddenBy !== undefined;
    return [...store.entries.read(id, { kind: 'anchor', own: true })]
      .filter(({ name = '' }) => !/^(?:session|fork|merge)\/|^intention$/.test(name))
      .map(({ session: of, seq, name, mark }) => ({
        session: id,
        seq,
        label: `⚓ ${name} at ${of}@${seq}${mark === 'boundary' ? ', handoff' : ''}${isUndone(seq) ? ' (undone)' : ''}`,
      }));
  });
  return drawGraph(nodes, { marks, ...lineOptions(context) });
}
