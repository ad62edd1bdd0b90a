import type { MergeRecord, SessionNode } from './node.ts';

/** What a picture of a graph shows: where a session begins, what is merged, how one ends that is not. */
export type GraphEvent =
  | { readonly kind: 'start'; readonly at: number; readonly node: SessionNode }
  | { readonly kind: 'merge'; readonly at: number; readonly node: SessionNode; readonly merge: MergeRecord }
  | { readonly kind: 'end'; readonly at: number; readonly node: SessionNode };

/** The events in the order of the graph's lines, and after which event each session's lane is not needed. */
export interface Course {
  readonly events: readonly GraphEvent[];
  readonly lastUse: ReadonlyMap<string, number>;
}

/** Puts what the sessions tell in order. */
export function courseOf(nodes: readonly SessionNode[]): Course {
  const lastUse = lastUses(nodes);
  const events = nodes.flatMap((node): GraphEvent[] => {
    const end = lastUse.get(node.id) ?? node.g;
    return [
      { kind: 'start', at: node.g, node },
      ...node.merges.map((merge) => ({ kind: 'merge' as const, at: merge.g, node, merge })),
      ...(Number.isInteger(end) || end === Number.POSITIVE_INFINITY
        ? []
        : [{ kind: 'end' as const, at: end, node }]),
    ];
  });
  return { events: events.sort((a, b) => a.at - b.at), lastUse };
}

/**
 * A lane ends with the last event that needs it. A session that ended without being merged has an event of
 * its own for that, half a step after its last line; one that is at work has no end.
 */
function lastUses(nodes: readonly SessionNode[]): Map<string, number> {
  const uses = new Map<string, number>();
  const use = (id: string | undefined, at: number) => {
    if (id !== undefined && at > (uses.get(id) ?? 0)) uses.set(id, at);
  };
  for (const node of nodes) {
    use(node.id, node.g);
    use(node.parent, node.g);
    for (const merge of node.merges) {
      use(node.id, merge.g);
      use(merge.into, merge.g);
    }
  }
  for (const node of nodes) {
    const last = uses.get(node.id) ?? node.g;
    if (node.merges.at(-1)?.g === last) continue;
    const atWork = node.status === 'active' || node.status === 'running';
    uses.set(node.id, atWork ? Number.POSITIVE_INFINITY : Math.max(last, node.lastG) + 0.5);
  }
  return uses;
}
