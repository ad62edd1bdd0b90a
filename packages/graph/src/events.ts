import type { MergeRecord, SessionNode } from './node.ts';

/** A point of a session that a picture names: an anchor, say, which the graph file does not know of. */
export interface PictureMark {
  /** The session's ULID. */
  readonly session: string;
  readonly seq: number;
  readonly label: string;
}

/** What a picture of a graph shows: where a session begins, its marks, what is merged, how one ends that is not. */
export type GraphEvent =
  | { readonly kind: 'start'; readonly at: number; readonly node: SessionNode }
  | { readonly kind: 'mark'; readonly at: number; readonly node: SessionNode; readonly label: string }
  | { readonly kind: 'merge'; readonly at: number; readonly node: SessionNode; readonly merge: MergeRecord }
  | { readonly kind: 'end'; readonly at: number; readonly node: SessionNode };

/** The events in the order of the graph's lines, and after which event each session's lane is not needed. */
export interface Course {
  readonly events: readonly GraphEvent[];
  readonly lastUse: ReadonlyMap<string, number>;
}

/** Puts what the sessions tell, and the marks of them, in order. */
export function courseOf(nodes: readonly SessionNode[], marks: readonly PictureMark[] = []): Course {
  const marked = placeMarks(nodes, marks);
  const lastUse = lastUses(nodes, marked);
  const told = nodes.flatMap((node): GraphEvent[] => {
    const end = lastUse.get(node.id) ?? node.g;
    return [
      { kind: 'start', at: node.g, node },
      ...node.merges.map((merge) => ({ kind: 'merge' as const, at: merge.g, node, merge })),
      ...(Number.isInteger(end) || end === Number.POSITIVE_INFINITY
        ? []
        : [{ kind: 'end' as const, at: end, node }]),
    ];
  });
  return { events: [...told, ...marked].sort((a, b) => a.at - b.at), lastUse };
}

type MarkEvent = Extract<GraphEvent, { kind: 'mark' }>;

/**
 * A mark has a position and no line in the file: it comes before the first fork or merge of its session that lies
 * behind it, and after all lines when there is none.
 */
function placeMarks(nodes: readonly SessionNode[], marks: readonly PictureMark[]): MarkEvent[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const end = Math.max(0, ...nodes.map((node) => node.lastG)) + 0.25;
  return marks
    .toSorted((a, b) => a.seq - b.seq)
    .flatMap(({ session, seq, label }) => {
      const node = byId.get(session);
      if (node === undefined) return [];
      const behind = nodes.flatMap((other) => [
        ...(other.parent === session && (other.base ?? 0) >= seq ? [other.g] : []),
        ...other.merges
          .filter((merge) => merge.into === session && (merge.seq ?? 0) > seq)
          .map((merge) => merge.g),
        ...(other === node
          ? node.merges.filter((merge) => (merge.range?.[1] ?? 0) >= seq).map((merge) => merge.g)
          : []),
      ]);
      const at = behind.length === 0 ? end : Math.min(...behind) - 0.25;
      return [{ kind: 'mark' as const, at: Math.max(at, node.g + 0.125), node, label }];
    });
}

/**
 * A lane ends with the last event that needs it. A session that ended without being merged has an event of
 * its own for that, half a step after its last line; one that is at work has no end.
 */
function lastUses(nodes: readonly SessionNode[], marked: readonly MarkEvent[]): Map<string, number> {
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
  for (const mark of marked) use(mark.node.id, mark.at);
  for (const node of nodes) {
    const last = uses.get(node.id) ?? node.g;
    if (node.merges.at(-1)?.g === last) continue;
    const atWork = node.status === 'active' || node.status === 'running';
    uses.set(node.id, atWork ? Number.POSITIVE_INFINITY : Math.max(last, node.lastG) + 0.5);
  }
  return uses;
}
