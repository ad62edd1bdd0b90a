import type { LayoutOptions, PictureRow, SessionGraph, SessionNode } from '@tapedeck/graph';
import type { HomeStore } from '@tapedeck/tape';
import { without } from './closed.ts';
import type { Lineage, LineageRow, Page, PageData } from './data.ts';
import { known } from './known.ts';
import { lineageRows } from './lineage-rows.ts';
import { type Marks, marksOf } from './marks.ts';
import { lineOf, needShown, type PageSource, refOf } from './source.ts';

/** Rows of an answer. */
const rowsMax = 200;
/** Sessions of a family up to which all have their marks: of a larger one those of the named session. */
const markedMax = 300;

/** The rows of a drawing of sessions, newest first, as `tape graph` draws them, with the anchors and merges on their lanes. */
export async function lineage(
  source: PageSource,
  { session = '', all = false, opened = [], closed = [], offset = 0 }: Parameters<PageData['lineage']>[0],
): Promise<Lineage> {
  const left = new Set(closed);
  if (session === '')
    return {
      ...(await newestTrees(source, { all, opened, closed: left, offset })),
      command: lineOf(source, 'graph', [], all ? ['--all'] : []),
    };
  const name = refOf(source.store, needShown(source.store, session));
  return {
    ...(await family(source, { session, closed: left, offset })),
    command: lineOf(source, 'graph', [name]),
  };
}

/** A session with its ancestors and all that is below them. */
async function family(
  source: PageSource,
  {
    session,
    closed,
    offset,
  }: { readonly session: string; readonly closed: ReadonlySet<string>; readonly offset: number },
): Promise<Page<LineageRow>> {
  const { store } = source;
  const info = needShown(store, session);
  const { readFamily } = await import('../lineage.ts');
  const { layOut } = await import('@tapedeck/graph');
  const { drawn, marks } = known(store, `family ${info.id}`, () => {
    const graph = readFamily(store, info.id);
    const nodes = graph.list();
    const marks = marksOf(store, nodes, { of: nodes.length > markedMax ? new Set([info.id]) : undefined });
    const look = { activity: activityIn(store, graph), shared: sharedIn(store), marks: marks.list };
    return { drawn: [...layOut(nodes, look)], marks };
  });
  const rows = [...without(drawn, closed)];
  const shown = rows.slice(offset, offset + rowsMax);
  const next = offset + shown.length;
  return {
    rows: await lineageRows(store, shown, marks),
    total: rows.length,
    ...(next < rows.length && { next }),
  };
}

/** An offset has the number of a tree, and that of a row of it. */
const treeMax = 1_000_000;
/** Trees that an answer reads. */
const treesMax = 1_000;

/** The trees in which something was said last. */
async function newestTrees(
  source: PageSource,
  {
    all,
    opened,
    closed,
    offset,
  }: {
    readonly all: boolean;
    readonly opened: readonly string[];
    readonly closed: ReadonlySet<string>;
    readonly offset: number;
  },
): Promise<Page<LineageRow>> {
  const { store } = source;
  const { readTree } = await import('../lineage.ts');
  const { layOut } = await import('@tapedeck/graph');
  const roots = known(store, 'roots', () => store.newestRoots());
  const rows: LineageRow[] = [];
  let [at, from] = [Math.floor(offset / treeMax), offset % treeMax];
  for (const last = at + treesMax; at < roots.length; at += 1, from = 0) {
    if (rows.length === rowsMax || at === last) return { rows, next: at * treeMax };
    const root = roots[at] ?? '';
    const most = rowsMax - rows.length;
    const { laid, marks } = drawnTree(store, {
      all,
      opened,
      layOut,
      read: () => readTree(store, root),
      root,
    });
    // One more, to know whether there are more.
    const found = [
      ...Iterator.from(without(laid, closed))
        .drop(from)
        .take(most + 1),
    ];
    rows.push(...(await lineageRows(store, found.slice(0, most), marks)));
    if (found.length > most) return { rows, next: at * treeMax + from + most };
  }
  return { rows };
}

interface Drawing {
  readonly laid: readonly PictureRow[];
  readonly marks: Marks;
}

/** The rows of a tree, with a few marks of the sessions that are drawn. Those of a large one are kept. */
function drawnTree(
  store: HomeStore,
  {
    root,
    all,
    opened,
    read,
    layOut,
  }: {
    readonly root: string;
    readonly all: boolean;
    readonly opened: readonly string[];
    readonly read: () => SessionGraph;
    readonly layOut: (nodes: readonly SessionNode[], o: LayoutOptions) => Iterable<PictureRow>;
  },
): Drawing {
  const draw = (): Drawing => {
    const graph = read();
    const nodes = graph.list();
    const look = {
      ...{ activity: activityIn(store, graph), fold: !all, shared: sharedIn(store) },
      open: new Set(opened),
    };
    const bare = [...layOut(nodes, look)];
    const drawn = new Set(bare.flatMap(({ node }) => node?.id ?? []));
    const few = drawn.size > markedMax ? new Set<string>() : drawn;
    const marks = marksOf(store, nodes, { of: few, most: 3, merges: all });
    return {
      laid: marks.list.length === 0 ? bare : [...layOut(nodes, { ...look, marks: marks.list })],
      marks,
    };
  };
  const isLarge = store.countSessions(root) > markedMax;
  return isLarge ? known(store, `tree ${root} ${all} ${opened}`, draw) : draw();
}

/** Names that several sessions have. */
function sharedIn(store: HomeStore): ReadonlySet<string> {
  return known(store, 'shared', () => store.sharedNames());
}

/** When something was last said in the sessions of a graph. */
function activityIn(store: HomeStore, graph: SessionGraph): (node: SessionNode) => number {
  const times = store.spokenTimes(graph.list().map(({ id }) => id));
  return ({ id }) => times.get(id) ?? 0;
}
