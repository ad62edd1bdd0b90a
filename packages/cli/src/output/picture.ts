import type { PictureRow, SessionGraph, SessionNode } from '@tapedeck/graph';
import { isDeleted } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { jsonText } from '../escape.ts';
import { type FileStanding, standingFields } from '../graph-file.ts';
import { textWidth } from '../terminal/width.ts';
import { printArray } from './array.ts';
import { lineOptions, printRows, treeJson } from './lineage.ts';

/** The sessions that a picture shows. Each function reads them anew, so that few of many are in memory. */
export interface Picture {
  readonly standing: FileStanding;
  /** All sessions, in parts. */
  sessions(): Iterable<readonly SessionNode[]>;
  /** Graphs of whole trees, the oldest first, and those in which something was said last first. */
  trees(): Iterable<SessionGraph>;
  newestTrees(): Iterable<SessionGraph>;
  /** When something was last said in the sessions of a tree. */
  activity?(tree: SessionGraph): (node: SessionNode) => number;
  /** Names of sessions of different trees. */
  readonly shared?: ReadonlySet<string> | undefined;
  /** How many sessions there are to draw, and how many children of one. */
  readonly total?: number | undefined;
  readonly childCount?: ((id: string) => number) | undefined;
}

/** How a picture is drawn. */
interface Drawing {
  /** A session whose family is drawn. */
  readonly name?: string | undefined;
  readonly all: boolean;
  /** How many rows are drawn, at most. */
  readonly rows?: number | undefined;
}

/** A picture of a graph that is in memory. */
export function pictureOf(
  graph: SessionGraph,
  more: Omit<Picture, 'sessions' | 'trees' | 'newestTrees'>,
): Picture {
  return { ...more, sessions: () => [graph.list()], trees: () => [graph], newestTrees: () => [graph] };
}

/** Prints a picture in a format. */
export async function printPicture(
  form: string,
  picture: Picture & Drawing,
  context: Context,
): Promise<void> {
  const { io, options } = context;
  const { sessions, shared } = picture;
  const graph = await import('@tapedeck/graph');
  const { dotLines, drawTree, mermaidLines, svgLines } = graph;
  switch (form) {
    case 'json': {
      const trees = treesJson(picture);
      if (options.jsonl === true) for (const tree of trees) await io.out(`${jsonText(tree)}\n`);
      else await printArray(io, trees);
      break;
    }
    case 'tree': {
      const look = { ...lineOptions(context), shared };
      await printRows(
        flat(picture.trees(), (tree) => drawTree(tree, undefined, look)),
        context,
      );
      break;
    }
    case 'dot':
      await printLines(dotLines(sessions, shared), context);
      break;
    case 'mermaid':
      await printLines(mermaidLines(sessions, shared), context);
      break;
    case 'svg': {
      const title = picture.name === undefined ? 'Sessions' : `The family of ${picture.name}`;
      await printLines(
        svgLines(() => rowsOf(picture, graph), { title, textWidth }),
        context,
        '',
      );
      break;
    }
    default:
      await printRows(drawn(picture, context, graph), context);
  }
}

function* flat<A, B>(items: Iterable<A>, act: (item: A) => Iterable<B>): Generator<B> {
  for (const item of items) yield* act(item);
}

function* treesJson({ trees, standing }: Picture): Generator<Readonly<Record<string, unknown>>> {
  for (const graph of trees())
    for (const root of graph.roots()) yield { ...treeJson(graph, root), ...standingFields(standing) };
}

/** How much text is printed at once, in characters. */
const pieceMin = 16_000;

/** Prints lines, many at once. */
async function printLines(lines: Iterable<string>, { io }: Pick<Context, 'io'>, end = '\n'): Promise<void> {
  let text = '';
  let separator = '';
  for (const line of lines) {
    text += `${separator}${line}`;
    separator = '\n';
    if (text.length < pieceMin) continue;
    await io.out(text);
    text = '';
  }
  await io.out(`${text}${end}`);
}

/** The rows of a drawing, as many as there are. */
function* rowsOf(
  { newestTrees, name, all, activity, childCount, shared }: Picture & Drawing,
  { layOut }: typeof import('@tapedeck/graph'),
): Generator<PictureRow> {
  for (const tree of newestTrees())
    yield* layOut(tree.list(), {
      activity: activity?.(tree),
      fold: !all && name === undefined,
      shared,
      ...(childCount !== undefined && {
        unread: (id) => {
          const drawn = tree.children(id).filter((child) => !isDeleted(child));
          return Math.max(0, childCount(id) - drawn.length);
        },
      }),
    });
}

/** The lines of a drawing, as many as there may be, and then how many sessions are missing. */
function* drawn(
  picture: Picture & Drawing,
  context: Context,
  graph: typeof import('@tapedeck/graph'),
): Generator<string> {
  const { rows = Number.POSITIVE_INFINITY, total } = picture;
  const look = lineOptions(context);
  let count = 0;
  let sessions = 0;
  let isCut = false;
  for (const row of rowsOf(picture, graph)) {
    isCut = count === rows;
    if (isCut) break;
    count += 1;
    // What is deleted is drawn for its descendants, and counted nowhere.
    sessions += row.node !== undefined && isDeleted(row.node) ? row.sessions - 1 : row.sessions;
    yield graph.drawRow(row, look);
  }
  const more = total === undefined ? undefined : total - sessions;
  if (more !== undefined && more > 0) yield `and ${more.toLocaleString('en')} more (--all)`;
  else if (isCut) yield 'and more (--all)';
}
