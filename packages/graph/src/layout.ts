import { shown, span, targetText } from './display.ts';
import { areDated, forestOf, type PictureMark, type Shape, shapeOf, type Tree } from './forest.ts';
import {
  distinctNames,
  drawnOrigin,
  edgeText,
  failureOf,
  goneTexts,
  type MergeRecord,
  type SessionNode,
  stateOf,
  undoneText,
} from './node.ts';

/** What a drawing shows, and in which order. */
export interface LayoutOptions {
  /**
   * Points of sessions to draw. Those that do not say when they were made are placed between the lines of the graph, so
   * `activity` is not used with them.
   */
  readonly marks?: readonly PictureMark[] | undefined;
  /** When something last happened in a session; the default is its last line. The newest is drawn first. */
  readonly activity?: ((node: SessionNode) => number) | undefined;
  /**
   * Draws less: of more than five children of one state the newest three, a merged child without what is below
   * it unless a session there is open, and of a long line of single children the last two.
   */
  readonly fold?: boolean | undefined;
  /** Sessions of which nothing below is folded. */
  readonly open?: ReadonlySet<string> | undefined;
  /** How many children of a session the given sessions lack. */
  readonly unread?: ((id: string) => number) | undefined;
  /** Names that other sessions have, too: the sessions of such a name get the names of their tapes. */
  readonly shared?: ReadonlySet<string> | undefined;
}

/** A row of a drawing: a session, a mark, or what was folded. */
export interface PictureRow {
  /** How many sessions are above this one. */
  readonly depth: number;
  /**
   * Whether the lane of each session above goes on below this row, the root's first. Of a deep row only the last
   * ones.
   */
  readonly lanes: readonly boolean[];
  readonly shape: Shape | 'mark' | 'more';
  readonly label: string;
  /** The session of the row, with whose name the label begins. */
  readonly node?: SessionNode;
  /** The mark of the row. */
  readonly mark?: PictureMark;
  /** The session below which the row stands, of a mark or of what was folded. */
  readonly of?: SessionNode;
  /** How many sessions this row shows, or counts. */
  readonly sessions: number;
}

/** How many lanes a row has, at most: the rows of a chain of forks would grow with its square. */
export const lanesMax = 40;

/** How many siblings of one state are all drawn, and how many of more. */
const siblings = { all: 5, some: 3 };

/** The length from which a line of single children is folded. */
const chainMin = 7;

/**
 * Arranges sessions in rows: trees one after the other, the newest first, each session before its children. `drawRow`
 * makes a line of a terminal of each.
 *
 * @example
 * ```ts
 * import { layOut, SessionGraph } from '@tapedeck/graph';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const graph = SessionGraph.fromRecords(store.lineage.read());
 * for (const { depth, label } of layOut(graph.list())) console.log(depth, label);
 * // 0 main active
 * // 1 idea [subagent] active, from main 1-1
 * ```
 */
export function* layOut(
  nodes: Iterable<SessionNode>,
  {
    activity = ({ lastG }) => lastG,
    marks = [],
    fold = false,
    open = new Set(),
    unread = () => 0,
    shared,
  }: LayoutOptions = {},
): Generator<PictureRow, void, undefined> {
  const trees = forestOf(
    distinctNames([...nodes], shared),
    areDated(marks) ? activity : ({ lastG }) => lastG,
    marks,
  );
  const levels = [trees.map((tree) => sessionItem(tree, { fold, open, unread })).values()];
  // For each session above, whether another item of it follows.
  const lanes: boolean[] = [];
  const waiting: (Item | undefined)[] = [next(levels[0])];
  for (let depth = 0; depth >= 0; ) {
    const item = waiting[depth];
    if (item === undefined) {
      depth -= 1;
      levels.length = waiting.length = depth + 1;
      lanes.length = Math.max(0, depth);
      continue;
    }
    waiting[depth] = next(levels[depth]);
    if (depth > 0) lanes[depth - 1] = waiting[depth] !== undefined;
    const { below, ...row } = item;
    yield { depth, lanes: lanes.slice(-lanesMax), ...row };
    const items = below?.() ?? [];
    if (items.length === 0) continue;
    depth += 1;
    levels[depth] = items.values();
    waiting[depth] = next(levels[depth]);
  }
}

interface Item extends Omit<PictureRow, 'depth' | 'lanes'> {
  readonly below?: () => Item[];
}

interface Folding {
  readonly fold: boolean;
  readonly open: ReadonlySet<string>;
  readonly unread: (id: string) => number;
}

function next(items: Iterator<Item> | undefined): Item | undefined {
  return items?.next().value;
}

function sessionItem(tree: Tree, around: Folding): Item {
  const { node } = tree;
  const folding = around.open.has(node.id) ? { ...around, fold: false } : around;
  const shape = shapeOf(node);
  const folds = folding.fold && shape === 'merged' && !tree.isOpen;
  const hidden = folds ? tree.below + folding.unread(node.id) : 0;
  return {
    shape,
    label: `${label(node)}${hidden === 0 ? '' : ` (${hidden} below)`}`,
    node,
    sessions: 1 + hidden,
    ...(hidden === 0 && { below: () => itemsOf(tree, folding) }),
  };
}

/** What is drawn on the lane of a session: children and marks, newest first, and then what was folded. */
function itemsOf(tree: Tree, folding: Folding): Item[] {
  const { node, marks } = tree;
  const { shown: drawn, hidden } = folding.fold
    ? foldSiblings(tree.children)
    : { shown: tree.children, hidden: new Map<string, number>() };
  const unread = folding.unread(node.id);
  const [only] = drawn;
  if (folding.fold && only !== undefined && isSingle(tree, unread)) {
    const chain = chainFrom(only, folding);
    const last = chain.at(-2);
    if (chain.length >= chainMin && last !== undefined) {
      const count = chain.length - 2;
      const more = `and ${count} more, each a child of the one before`;
      const below = () => [sessionItem(last, folding)];
      return [{ shape: 'more', label: more, of: node, sessions: count, below }];
    }
  }
  const dated = [
    ...drawn.map((child) => ({ at: child.newest, item: () => sessionItem(child, folding) })),
    ...marks.map(({ at, mark }) => ({
      at,
      item: (): Item => ({ shape: 'mark', label: shown(mark.label), mark, of: node, sessions: 0 }),
    })),
  ];
  return [...dated.sort((a, b) => b.at - a.at).map((one) => one.item()), ...moreItems(node, hidden, unread)];
}

/** Divides siblings into those to draw and, by state, the number of the others. */
function foldSiblings(children: readonly Tree[]): {
  readonly shown: readonly Tree[];
  readonly hidden: ReadonlyMap<string, number>;
} {
  const byStatus = Map.groupBy(children, ({ node }) => stateOf(node));
  const large = new Map(
    [...byStatus]
      .filter(([, { length }]) => length > siblings.all)
      .map(([status, all]) => [status, new Set(all.slice(siblings.some))]),
  );
  return {
    shown: children.filter((child) => large.get(stateOf(child.node))?.has(child) !== true),
    hidden: new Map(Array.from(large, ([status, rest]) => [status, rest.size])),
  };
}

/** Children that were not read have no known state, so all are counted together. */
function moreItems(of: SessionNode, hidden: ReadonlyMap<string, number>, unread: number): Item[] {
  const counts: readonly (readonly [string, number])[] =
    unread === 0 ? [...hidden] : [['', [...hidden.values()].reduce((sum, n) => sum + n, unread)]];
  return counts.map(([status, count]) => ({
    shape: 'more',
    label: `and ${count} more ${status === '' ? '' : `${shown(status)} `}${count === 1 ? 'child' : 'children'}`,
    of,
    sessions: count,
  }));
}

function isSingle({ children, marks }: Tree, unread: number): boolean {
  return children.length === 1 && marks.length === 0 && unread === 0;
}

/** A session and those below it, as long as each has a single child. */
function chainFrom(first: Tree, { unread }: Folding): Tree[] {
  const chain: Tree[] = [];
  for (let at: Tree | undefined = first; at !== undefined; ) {
    chain.push(at);
    at = isSingle(at, unread(at.node.id)) ? at.children[0] : undefined;
  }
  return chain;
}

/** Name, kind, status, merges and origin of a session, and whether its source is gone. */
function label(node: SessionNode): string {
  const kind = node.kind === 'session' ? '' : ` [${shown(node.kind)}]`;
  const merges = node.merges.map(mergeLabel);
  const verb = merges.at(-1)?.split(' ')[0];
  const failure = failureOf(node);
  const acts = [
    ...(verb === node.status ? [] : [shown(node.status)]),
    ...merges,
    ...(failure === undefined ? [] : [shown(failure)]),
    ...goneTexts(node),
    ...origin(node),
  ];
  return `${shown(node.session)}${kind} ${acts.join(', ')}`;
}

function mergeLabel(merge: MergeRecord): string {
  const { type, range } = merge;
  const what = range === undefined ? '' : ` ${span(range)}`;
  return `${type === 'merge' ? 'merged' : 'discarded'}${what}${targetText(merge)}${undoneText(merge)}`;
}

function origin(node: SessionNode): string[] {
  const { parentName, range } = node;
  const { name, anchor: from, link } = drawnOrigin(node);
  const linked =
    link === undefined
      ? []
      : [
          parentName === undefined
            ? `without a parent (${shown(edgeText(link))})`
            : `linked to ${shown(parentName)} (${shown(edgeText(link))})`,
        ];
  if (name === undefined) return linked;
  const anchor = from === undefined ? '' : ` ⚓ ${shown(from)}`;
  const part = range === undefined ? '' : range === null ? ' without its entries' : ` ${span(range)}`;
  return [`from ${shown(name)}${anchor}${part}`, ...linked];
}
