import type { MergeRecord, SessionNode } from './node.ts';

/** A labelled point of a session in a drawing, such as an anchor, which the graph file does not contain. */
export interface PictureMark {
  /** The session's ULID. */
  readonly session: string;
  readonly seq: number;
  readonly label: string;
}

/**
 * An event of a drawing: the start of a session, a mark, a merge, or the end of a session without a merge.
 */
export type GraphEvent =
  | { readonly kind: 'start'; readonly at: number; readonly node: SessionNode }
  | { readonly kind: 'mark'; readonly at: number; readonly node: SessionNode; readonly label: string }
  | { readonly kind: 'merge'; readonly at: number; readonly node: SessionNode; readonly merge: MergeRecord }
  | { readonly kind: 'end'; readonly at: number; readonly node: SessionNode };

/**
 * The events in the order of the lines of the graph, and the last event that needs the lane of each session.
 */
export interface Course {
  readonly events: readonly GraphEvent[];
  readonly lastUse: ReadonlyMap<string, number>;
}

/** Orders the events and marks of sessions. */
export function courseOf(nodes: readonly SessionNode[], marks: readonly PictureMark[] = []): Course {
  const marked = placeMarks(nodes, marks);
  const lastUse = lastUses(nodes, marked);
  const recorded = nodes.flatMap((node): GraphEvent[] => {
    const end = lastUse.get(node.id) ?? node.g;
    return [
      { kind: 'start', at: node.g, node },
      ...node.merges.map((merge) => ({ kind: 'merge' as const, at: merge.g, node, merge })),
      ...(Number.isInteger(end) || end === Number.POSITIVE_INFINITY
        ? []
        : [{ kind: 'end' as const, at: end, node }]),
    ];
  });
  return { events: [...recorded, ...marked].sort((a, b) => a.at - b.at), lastUse };
}

type MarkEvent = Extract<GraphEvent, { kind: 'mark' }>;

/**
 * Places marks, which have a position but no line in the file: before the first fork or merge of the session
 * at a later position, else after all lines.
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
 * The last event that needs each lane. A session that ended without a merge gets an end event, half a step
 * after its last line; an active session has no end.
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
    const isActive = node.status === 'active' || node.status === 'running';
    uses.set(node.id, isActive ? Number.POSITIVE_INFINITY : Math.max(last, node.lastG) + 0.5);
  }
  return uses;
}
