import type { SessionNode } from '@tapedeck/graph';
import type { HomeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import type { LineageRow } from './data.ts';
import { lineageRows } from './lineage-rows.ts';
import { marksOf } from './marks.ts';
import type { Scoped } from './scope.ts';

/** The rows of some sessions, nothing folded, with what stands on their lanes in the positions that are shown. */
export async function treeRows(
  store: HomeStore,
  within: ReadonlyMap<string, Scoped>,
): Promise<readonly LineageRow[]> {
  const { readFamily } = await import('../lineage.ts');
  const { layOut } = await import('@tapedeck/graph');
  const found = new Map<string, SessionNode>();
  // Links can put a session elsewhere than what it was forked from.
  for (const id of within.keys())
    if (!found.has(id)) for (const node of readFamily(store, id).list()) found.set(node.id, node);
  const shown = new Set(within.keys());
  // A deleted session holds together what was forked from it.
  for (const id of shown) {
    const above = found.get(found.get(id)?.parent ?? '');
    if (above !== undefined && isDeleted(above)) shown.add(above.id);
  }
  const nodes = [...found.values()].filter(({ id }) => shown.has(id));
  const marks = marksOf(store, nodes, { of: undefined });
  const times = store.spokenTimes(nodes.map(({ id }) => id));
  const laid = layOut(nodes, {
    activity: ({ id }) => times.get(id) ?? 0,
    marks: marks.list.filter(({ session, seq }) => seq <= (within.get(session)?.to ?? 0)),
  });
  return await lineageRows(store, [...laid], marks);
}
