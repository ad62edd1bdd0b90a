import type { SessionNode } from './node.ts';

/** A labelled point of a session in a drawing, such as an anchor, which the graph file does not contain. */
export interface PictureMark {
  /** The session's ULID. */
  readonly session: string;
  readonly seq: number;
  readonly label: string;
  /** When it was made, in the measure of `activity`. Where all marks say it, it gives them their places. */
  readonly at?: number;
}

/** Whether all of some marks say when they were made. */
export function areDated(marks: readonly PictureMark[]): boolean {
  return marks.every(({ at }) => at !== undefined);
}

/** A session in a drawing, with what its subtree has. */
export interface Tree {
  readonly node: SessionNode;
  /** When something last happened in the subtree. */
  newest: number;
  /** How many sessions are below this one, and whether one of the subtree is open. */
  below: number;
  isOpen: boolean;
  /** Its children, newest first, and its marks, newest first. */
  readonly children: Tree[];
  marks: readonly PlacedMark[];
}

/** A mark with its place between the lines of the graph, or in time. */
interface PlacedMark {
  readonly at: number;
  readonly mark: PictureMark;
}

/** How a drawing shows the state of a session: it goes on, its work is in its parent, or it ended without that. */
export type Shape = 'open' | 'merged' | 'ended';

const endings: ReadonlySet<string> = new Set([
  'discarded',
  'failed',
  'aborted',
  'halted',
  'filtered',
  'orphaned',
  'archived',
  'deleted',
  'destroyed',
  'purged',
]);

/** The shape of a session. */
export function shapeOf({ status }: SessionNode): Shape {
  if (status === 'merged') return 'merged';
  return endings.has(status) ? 'ended' : 'open';
}

/**
 * Arranges sessions as trees, each with its newest activity: the tree with the newest first, and so the children of
 * each session. A session whose parent is not among them is the root of a tree.
 */
export function forestOf(
  nodes: readonly SessionNode[],
  activity: (node: SessionNode) => number,
  marks: readonly PictureMark[] = [],
): Tree[] {
  const placed = placeMarks(nodes, marks);
  const trees = new Map(
    nodes.map((node): [string, Tree] => [
      node.id,
      {
        node,
        newest: activity(node),
        below: 0,
        isOpen: shapeOf(node) === 'open',
        children: [],
        marks: placed.get(node.id) ?? [],
      },
    ]),
  );
  const roots: Tree[] = [];
  for (const tree of trees.values()) {
    const parent = trees.get(tree.node.parent ?? '');
    if (parent === undefined || parent === tree) roots.push(tree);
    else parent.children.push(tree);
  }
  sumUp(roots);
  return roots.sort(newestFirst);
}

/** Adds up what each subtree has, deepest first, without recursion: a lineage may be any number of forks deep. */
function sumUp(roots: readonly Tree[]): void {
  const order = [...roots];
  for (const tree of order) for (const child of tree.children) order.push(child);
  for (const tree of order.reverse()) {
    for (const { newest, below, isOpen } of tree.children) {
      tree.newest = Math.max(tree.newest, newest);
      tree.below += 1 + below;
      tree.isOpen ||= isOpen;
    }
    tree.children.sort(newestFirst);
  }
}

function newestFirst(a: Tree, b: Tree): number {
  return b.newest - a.newest || b.node.g - a.node.g;
}

/**
 * Places marks, which have a position but no line in the file: by their times, or else before the first fork or merge of
 * the session at a later position, else after all lines.
 */
function placeMarks(
  nodes: readonly SessionNode[],
  marks: readonly PictureMark[],
): ReadonlyMap<string, readonly PlacedMark[]> {
  if (marks.length === 0) return new Map();
  if (areDated(marks)) return datedMarks(marks);
  const acts = new Map<string, { readonly seq: number; readonly g: number }[]>();
  const add = (id: string | undefined, act: { readonly seq: number; readonly g: number }) => {
    if (id !== undefined) acts.set(id, [...(acts.get(id) ?? []), act]);
  };
  let newest = 0;
  for (const node of nodes) {
    newest = Math.max(newest, node.lastG);
    add(node.origin, { seq: node.base ?? 0, g: node.g });
    for (const { g, into, seq = 0, range } of node.merges) {
      add(into, { seq: seq - 1, g });
      add(node.id, { seq: range?.[1] ?? 0, g });
    }
  }
  const starts = new Map(nodes.map(({ id, g }) => [id, g]));
  return new Map(
    Array.from(
      Map.groupBy(marks, ({ session }) => session),
      ([session, own]) => {
        const placed = own
          .toSorted((a, b) => b.seq - a.seq)
          .map((mark) => {
            const { seq } = mark;
            const behind = (acts.get(session) ?? []).filter((act) => act.seq >= seq).map(({ g }) => g);
            const at = behind.length === 0 ? newest + 0.25 : Math.min(...behind) - 0.25;
            return { at: Math.max(at, (starts.get(session) ?? 0) + 0.125), mark };
          });
        return [session, placed] as const;
      },
    ),
  );
}

function datedMarks(marks: readonly PictureMark[]): ReadonlyMap<string, readonly PlacedMark[]> {
  const placed = marks.toSorted((a, b) => b.seq - a.seq).map((mark) => ({ at: mark.at ?? 0, mark }));
  return Map.groupBy(placed, ({ mark }) => mark.session);
}
