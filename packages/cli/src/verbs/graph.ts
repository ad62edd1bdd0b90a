import type { LineOptions, SessionGraph, SessionNode } from '@tapedeck/graph';
import type { SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { compareTail, type FileStanding, reportStanding, standingFields } from '../graph-file.ts';
import { doesExist, type Home } from '../home.ts';
import { timeOf } from '../input.ts';
import { printArray } from '../output/array.ts';
import { textWidth } from '../terminal/width.ts';
import { defineVerb, type Verb } from './verb.ts';

/** How many rows a drawing has where it is not on a terminal. */
const rowsInPipe = 50;

export const graph: Verb = defineVerb({
  command: 'graph [name]',
  group: 'Look',
  paged: true,
  summary: 'Draw sessions with their forks and merges',
  detail:
    'Draws trees, newest first: a session has its place by its last message. The default drawing has a screenful of rows, the newest ' +
    'three of many children, and no children of merged ones; --all has every session. With a name: that session, its ancestors and its ' +
    'descendants. Formats other than lanes have every session, unless a name, --since or -n selects some; svg folds as the default drawing ' +
    'does. --output takes the format from the ending .svg, .dot, .mmd or .json, and replaces a file. Shows all realms; ' +
    'sessions of one name get the names of their tapes. Draws from the database. Exits 5 when session_graph.jsonl differs: what has every ' +
    'session compares all lines of it, anything else the last. Without a database, draws the file.',
  examples: [
    ['tape graph', 'Draw the newest sessions, and their trees'],
    ['tape graph main', 'Draw the family of one session'],
    ['tape graph --since 2026-11-21', 'Draw what was said or forked from that day on'],
    ['tape graph -o graph.svg', 'Draw an image'],
    ['tape graph --format dot | dot -Tpdf > graph.pdf', 'Draw with Graphviz'],
  ],
  arguments: { name: 'Session whose ancestors and descendants to draw' },
  options: {
    all: { type: 'boolean', describe: 'Draw every session, and fold nothing' },
    since: {
      type: 'string',
      describe: 'Only sessions with a message at this time or later, and their ancestors: 2026-11-21T10:00',
    },
    n: { type: 'number', describe: 'Only the newest N sessions, and their ancestors' },
    format: {
      type: 'string',
      choices: ['lanes', 'tree', 'json', 'dot', 'mermaid', 'svg'],
      describe: 'Output format (default: lanes)',
    },
    output: { type: 'string', alias: 'o', describe: 'Write to this file, in the format of its ending' },
  },
  run: async ({ name, format, output, all = false, since, n }, context) => {
    const { io, options } = context;
    const asJson = options.json === true || options.jsonl === true;
    if (asJson && format !== undefined && format !== 'json')
      throw new UsageError(`cannot print --format ${format} as JSON`);
    if (name !== undefined && (since !== undefined || n !== undefined))
      throw new UsageError(
        `cannot draw a part of the family of '${name}': --since and -n select among all sessions`,
      );
    const { formatOf, writePicture } = await import('../output/picture-file.ts');
    const ending = output === undefined ? undefined : formatOf(output);
    if (
      ending !== undefined &&
      ((format !== undefined && format !== ending) || (asJson && ending !== 'json'))
    )
      throw new UsageError(`cannot write ${format ?? 'json'} to '${output}': its ending means ${ending}`);
    const form = ending ?? format ?? (asJson ? 'json' : 'lanes');
    const rows = all || n !== undefined ? undefined : io.isTerminal ? Math.max(5, io.rows - 2) : rowsInPipe;
    const query: Query = { name, all, since: sinceOf(since, io.now()), n, ...(form === 'lanes' && { rows }) };
    const { home } = context;
    const show = async (picture: Picture) => {
      if (output === undefined) await print(form, { ...query, ...picture }, context);
      else {
        const texts: string[] = [];
        const out = async (text: string | Uint8Array) => void texts.push(String(text));
        await print(form, { ...query, ...picture }, { ...context, io: { ...io, out } });
        writePicture(output, texts.join(''));
        context.status(`Wrote ${output}`);
      }
      return reportStanding(picture.standing, context);
    };
    if (!doesExist(home.db)) return await show(await readFile(query, context));
    const isSelected = name !== undefined || since !== undefined || n !== undefined;
    if (form === 'json' && !isSelected && output === undefined) return await printTrees(context);
    // The rows are drawn while the store is open: it counts the children that are not read.
    return await context.reading(async (store) => await show(await readStore(query, store, home)));
  },
});

/** Prints each tree as it is read from the database, so that few are in memory. */
async function printTrees(context: Context): Promise<number> {
  const { io, options, home, reading } = context;
  const { compareWhole, readTrees } = await import('../lineage.ts');
  const { treeJson } = await import('../output/lineage.ts');
  return await reading(async (store) => {
    const standing = await compareWhole(store, home);
    const trees = readTrees(store).flatMap((one) =>
      one.roots().map((root) => ({ ...treeJson(one, root), ...standingFields(standing) })),
    );
    if (options.jsonl === true) for (const tree of trees) await io.out(`${jsonText(tree)}\n`);
    else await printArray(io, trees);
    return reportStanding(standing, context);
  });
}

interface Query {
  readonly name: string | undefined;
  readonly all: boolean;
  readonly since: number | undefined;
  readonly n: number | undefined;
  /** How many rows are drawn, at most. */
  readonly rows?: number | undefined;
}

interface Picture {
  readonly graph: SessionGraph;
  readonly standing: FileStanding;
  readonly activity?: ((node: SessionNode) => number) | undefined;
  /** How many sessions there are to draw, and how many children of one. */
  readonly total?: number | undefined;
  readonly childCount?: ((id: string) => number) | undefined;
}

function sinceOf(since: string | undefined, now: number): number | undefined {
  const from = since === undefined ? undefined : timeOf(since, now);
  if (since !== undefined && from === undefined)
    throw new UsageError(`cannot draw sessions since '${since}': it is no time`, {
      hint: 'write it as 2026-11-21 or 2026-11-21T10:00',
    });
  return from;
}

/** Reads what a query selects from the database. */
async function readStore(query: Query, store: SqliteTapeStore, home: Home): Promise<Picture> {
  const { name, since, n, rows } = query;
  const { idOf, readFamily, readNewest, readWhole } = await import('../lineage.ts');
  const activityOf = (graph?: SessionGraph) => {
    const times = store.spokenTimes(graph?.list().map(({ id }) => id));
    return ({ id }: SessionNode) => times.get(id) ?? 0;
  };
  if (name !== undefined) {
    const graph = readFamily(store, await idOf(name, { store, home }));
    const standing = await compareTail(store, home);
    return { graph, standing, activity: activityOf(graph), total: graph.list().length };
  }
  if (rows === undefined && since === undefined && n === undefined)
    return { ...(await readWhole(store, home)), activity: activityOf(), total: store.countSessions() };
  // Of many children a few are drawn: several times as many sessions as rows fill these.
  const limit = n ?? (rows === undefined ? undefined : 4 * rows);
  const graph = readNewest(store, { limit, since });
  const counts = { total: store.countSessions(), childCount: (id: string) => store.countSessions(id) };
  const standing = await compareTail(store, home);
  return { graph, standing, activity: activityOf(graph), ...(since === undefined && counts) };
}

/** Reads what a query selects from the graph file. */
async function readFile(query: Query, { home, status }: Context): Promise<Picture> {
  const { openSessionGraph } = await import('@tapedeck/graph');
  const { warnOfSkips } = await import('../output/lineage.ts');
  const { readSelected } = await import('../lineage.ts');
  const whole = openSessionGraph(home.graph);
  warnOfSkips(whole, { status });
  const graph = readSelected(whole, home, query);
  return { graph, standing: { is: 'same' }, total: graph.list().length };
}

async function print(form: string, picture: Picture & Query, context: Context): Promise<void> {
  const { graph, standing } = picture;
  const { io, options } = context;
  const { lineOptions, printRows, treeJson } = await import('../output/lineage.ts');
  const { drawTree, toDot, toMermaid, toSvg } = await import('@tapedeck/graph');
  switch (form) {
    case 'json': {
      const trees = graph.roots().map((root) => ({ ...treeJson(graph, root), ...standingFields(standing) }));
      if (options.jsonl === true) for (const tree of trees) await io.out(`${jsonText(tree)}\n`);
      else await io.out(`${jsonText(trees)}\n`);
      break;
    }
    case 'tree':
      await printRows(drawTree(graph, undefined, lineOptions(context)), context);
      break;
    case 'dot':
      await io.out(`${toDot(graph.list())}\n`);
      break;
    case 'mermaid':
      await io.out(`${toMermaid(graph.list())}\n`);
      break;
    case 'svg':
      await io.out(
        toSvg(graph.list(), {
          activity: picture.activity,
          fold: !picture.all && picture.name === undefined,
          title: picture.name === undefined ? 'Sessions' : `The family of ${picture.name}`,
          textWidth,
        }),
      );
      break;
    default:
      await printRows(drawn(picture, lineOptions(context), await import('@tapedeck/graph')), context);
  }
}

/** The rows of a drawing, as many as there may be, and then how many sessions are missing. */
function* drawn(
  { graph, name, all, rows = Number.POSITIVE_INFINITY, activity, total, childCount }: Picture & Query,
  options: LineOptions,
  { drawRow, layOut }: typeof import('@tapedeck/graph'),
): Iterable<string> {
  const unread = (id: string) => Math.max(0, (childCount?.(id) ?? 0) - graph.children(id).length);
  const layout = layOut(graph.list(), {
    activity,
    fold: !all && name === undefined,
    ...(childCount !== undefined && { unread }),
  });
  let count = 0;
  let sessions = 0;
  for (const row of layout) {
    if (count === rows) break;
    count += 1;
    sessions += row.sessions;
    yield drawRow(row, options);
  }
  const isCut = layout.next().done !== true;
  const more = total === undefined ? undefined : total - sessions;
  if (more !== undefined && more > 0) yield `and ${more.toLocaleString('en')} more (--all)`;
  else if (isCut) yield 'and more (--all)';
}
