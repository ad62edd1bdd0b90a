import type { SessionGraph, SessionNode } from '@tapedeck/graph';
import type { HomeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { doesExist, type FileHome } from '../file-home.ts';
import { compareTail, reportStanding } from '../graph-file.ts';
import { assertThere, isLarge } from '../home.ts';
import { stdinWord, timeOf } from '../input.ts';
import type { Picture } from '../output/picture.ts';
import { withProgress } from '../output/progress.ts';
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
    'does. --output takes the format from the ending .svg, .dot, .mmd or .json, and replaces a file. Shows all realms, and a ' +
    'deleted session only as its ULID, where sessions that are not deleted were forked from it or it is named; ' +
    'sessions of one name get the names of their tapes. Draws from the database. Exits 5 when session_graph.jsonl differs: what has every ' +
    'session compares all lines of it, anything else the last. Without a database, draws the file, which does not say which merges were undone. ' +
    '--export writes the lines of that file (a home on a server has none), and continues a file that has some of them.',
  examples: [
    ['tape graph', 'Draw the newest sessions, and their trees'],
    ['tape graph main', 'Draw the family of one session'],
    ['tape graph --since 2026-11-21', 'Draw what was said or forked from that day on'],
    ['tape graph -o graph.svg', 'Draw an image'],
    ['tape graph --format dot | dot -Tpdf > graph.pdf', 'Draw with Graphviz'],
    ['tape graph --export graph.jsonl', 'Write session_graph.jsonl, also of a home on a server'],
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
    output: {
      type: 'string',
      takes: 'FILE',
      alias: 'o',
      describe: 'Write to this file, in the format of its ending (- for stdout)',
    },
    export: {
      type: 'string',
      takes: 'FILE',
      describe: 'Write the lines of session_graph.jsonl to this file, which it continues',
    },
    follow: {
      type: 'boolean',
      alias: 'f',
      needs: 'export',
      describe: 'Also write what any process adds, until Ctrl-C',
    },
  },
  conflicts: { export: ['name', 'all', 'since', 'n', 'format', 'output', 'json', 'jsonl'] },
  run: async ({ name, format, output: file, all = false, since, n, export: target, follow }, context) => {
    const { io, options } = context;
    if (target !== undefined) {
      if (target === '' || target === stdinWord)
        throw new UsageError('cannot export the graph: name a file, which later exports continue');
      const { exportGraph } = await import('../export/graph.ts');
      return await exportGraph(target, { follow: follow === true }, context);
    }
    const output = file === stdinWord ? undefined : file;
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
      const { printPicture } = await import('../output/picture.ts');
      const whole = { ...query, ...picture };
      if (output === undefined) await printPicture(form, whole, context);
      else {
        await writePicture(output, (out) => printPicture(form, whole, { ...context, io: { ...io, out } }));
        context.status(`Wrote ${output}`);
      }
      return reportStanding(picture.standing, context);
    };
    assertThere(home);
    if (home.server === undefined && !doesExist(home.db))
      return await show(await readFile(query, home, context));
    // What is drawn is read from the store on the way.
    return await context.reading(async (store) => await show(await readStore(query, store, context)));
  },
});

interface Query {
  readonly name: string | undefined;
  readonly all: boolean;
  readonly since: number | undefined;
  readonly n: number | undefined;
  /** How many rows are drawn, at most. */
  readonly rows?: number | undefined;
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
async function readStore(
  { name, since, n, rows }: Query,
  store: HomeStore,
  context: Context,
): Promise<Picture> {
  const { home, io } = context;
  const { compareWhole, idOf, readFamily, readNewest, readNewestTrees, readSessions, readTrees } =
    await import('../lineage.ts');
  const { pictureOf } = await import('../output/picture.ts');
  const activity = (graph: SessionGraph) => {
    const times = store.spokenTimes(graph.list().map(({ id }) => id));
    return ({ id }: SessionNode) => times.get(id) ?? 0;
  };
  if (name !== undefined) {
    const graph = readFamily(store, idOf(name, store));
    const standing = await compareTail(store, home);
    return pictureOf(graph, { standing, activity, total: countIn(graph) });
  }
  if (rows === undefined && since === undefined && n === undefined) {
    if (isLarge(home)) io.saveMemory();
    return {
      standing: await withProgress(context, (progress) =>
        compareWhole(store, home, { onProgress: progress('Comparing lines of the graph file') }),
      ),
      sessions: () => readSessions(store),
      trees: () => readTrees(store),
      newestTrees: () => readNewestTrees(store),
      activity,
      shared: store.sharedNames(),
      total: store.countSessions(),
    };
  }
  // Of many children a few are drawn: several times as many sessions as rows fill these.
  const limit = n ?? (rows === undefined ? undefined : 4 * rows);
  const graph = readNewest(store, { limit, since });
  const counts = { total: store.countSessions(), childCount: (id: string) => store.countSessions(id) };
  const standing = await compareTail(store, home);
  return pictureOf(graph, { standing, activity, ...(since === undefined && counts) });
}

/** Reads what a query selects from the graph file. */
async function readFile(query: Query, home: FileHome, { status }: Context): Promise<Picture> {
  const { openSessionGraph } = await import('@tapedeck/graph');
  const { warnOfSkips } = await import('../output/lineage.ts');
  const { pictureOf } = await import('../output/picture.ts');
  const { readSelected } = await import('../lineage.ts');
  const whole = openSessionGraph(home.graph);
  warnOfSkips(whole, { status });
  const graph = readSelected(whole, home, query);
  return pictureOf(graph, { standing: { is: 'same' }, total: countIn(graph) });
}

/** How many sessions of a graph are not deleted. */
function countIn(graph: SessionGraph): number {
  return graph.list().filter((node) => !isDeleted(node)).length;
}
