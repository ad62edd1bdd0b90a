import type { SessionGraph, SessionNode } from '@tapedeck/graph';
import { nearNames } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { compareTail, reportStanding, standingFields } from '../graph-file.ts';
import { doesExist } from '../home.ts';
import type { Drawn } from '../lineage.ts';
import { defineVerb, type Verb } from './verb.ts';

export const graph: Verb = defineVerb({
  command: 'graph',
  group: 'Look',
  paged: true,
  summary: 'Draw the forks and merges of all sessions',
  detail:
    'Draws from the database, and compares every line of session_graph.jsonl with it: exits 5 when one differs. Without a ' +
    'database, draws the file. Shows all realms; sessions of one name get the names of their tapes. Draws at most 40 lanes: more ' +
    'open sessions are branches without a lane.',
  examples: [
    ['tape graph', 'Draw lanes, oldest first'],
    ['tape graph --format dot | dot -Tsvg > graph.svg', 'Draw an image with Graphviz'],
  ],
  options: {
    format: {
      type: 'string',
      choices: ['lanes', 'tree', 'json', 'dot', 'mermaid'],
      describe: 'Output format (default: lanes)',
    },
  },
  run: async ({ format }, context) => {
    const { io, options, color } = context;
    const asJson = options.json === true || options.jsonl === true;
    if (asJson && format !== undefined && format !== 'json')
      throw new UsageError(`cannot print --format ${format} as JSON`);
    const { drawGraph, drawTree, toDot, toMermaid } = await import('@tapedeck/graph');
    const { graph: lineage, standing } = await readAll(context);
    switch (format ?? (asJson ? 'json' : 'lanes')) {
      case 'json': {
        const trees = lineage
          .roots()
          .map((root) => ({ ...treeJson(lineage, root), ...standingFields(standing) }));
        if (options.jsonl === true) for (const tree of trees) await io.out(`${jsonText(tree)}\n`);
        else await io.out(`${jsonText(trees)}\n`);
        break;
      }
      case 'tree':
        await lines(context, drawTree(lineage));
        break;
      case 'dot':
        await io.out(`${toDot(lineage.list())}\n`);
        break;
      case 'mermaid':
        await io.out(`${toMermaid(lineage.list())}\n`);
        break;
      default:
        await lines(
          context,
          drawGraph(lineage.list(), { color, ...(io.isTerminal && { width: io.columns }) }),
        );
    }
    return reportStanding(standing, context);
  },
});

/** Draws from the database, and from the graph file where there is none. */
async function readAll(context: Context): Promise<Drawn> {
  const { home, reading } = context;
  if (doesExist(home.db)) {
    const { readWhole } = await import('../lineage.ts');
    return await reading((store) => readWhole(store, home));
  }
  const { openSessionGraph } = await import('@tapedeck/graph');
  const graph = openSessionGraph(home.graph);
  warn(graph, context);
  return { graph, standing: { is: 'same' } };
}

/** A session with its ancestors and descendants. An unknown name is looked for among all sessions. */
async function readAbout(name: string, context: Context): Promise<Drawn> {
  const { home, reading } = context;
  const found = doesExist(home.db)
    ? await reading(async (store) => {
        const info = store.sessions.find(name);
        if (info === undefined) return undefined;
        const { readFamily } = await import('../lineage.ts');
        return { graph: readFamily(store, info.id), standing: await compareTail(store, home) };
      })
    : undefined;
  return found ?? (await readAll(context));
}

export const lineage: Verb = defineVerb({
  command: 'lineage <name>',
  group: 'Look',
  paged: true,
  summary: 'Show the ancestors and descendants of a session',
  detail:
    'Answers from the database. Compares the end of session_graph.jsonl with it: exits 5 when it differs. An edit before the end ' +
    'is found by graph and check alone. Without a database, reads the file.',
  examples: [['tape lineage main', 'Show the tree of main']],
  arguments: { name: 'Session' },
  run: async ({ name }, context) => {
    const { drawTree } = await import('@tapedeck/graph');
    const { graph: lineageGraph, standing } = await readAbout(name, context);
    const above = await ancestorsOf(lineageGraph, name);
    if (context.options.json === true || context.options.jsonl === true) {
      const own = lineageGraph.find(name);
      const tree = own === undefined ? {} : treeJson(lineageGraph, own);
      await context.io.out(
        `${jsonText({ ...tree, ancestors: above.map((node) => node.session), ...standingFields(standing) })}\n`,
      );
    } else await lines(context, drawTree(lineageGraph, above.at(-1)?.id ?? name));
    return reportStanding(standing, context);
  },
});

/**
 * The ancestors of a session, nearest first.
 * @throws GRAPH_NO_SESSION with near names
 */
async function ancestorsOf(graph: SessionGraph, name: string): Promise<SessionNode[]> {
  try {
    return graph.ancestors(name);
  } catch (error) {
    const { GraphError } = await import('@tapedeck/graph');
    if (!(error instanceof GraphError)) throw error;
    const known = graph.list().map((node) => node.session);
    throw new GraphError(error.code, error.message, {
      data: { ...error.data, near: nearNames(name, known) },
      cause: error,
    });
  }
}

/** Warns of skipped lines: a lineage without them is incomplete. */
function warn({ skipped }: SessionGraph, { status }: Context): void {
  const reasons = Object.entries(skipped).filter(([, count]) => count > 0);
  if (reasons.length > 0)
    status(`Skipped lines of the graph file: ${reasons.map(([why, count]) => `${count} ${why}`).join(', ')}`);
}

async function lines({ io, status }: Context, rows: readonly string[]): Promise<void> {
  if (rows.length === 0) status('No sessions');
  for (const row of rows) await io.out(`${row}\n`);
}

/** A session with its descendants, nested. */
function treeJson(graph: SessionGraph, node: SessionNode): Readonly<Record<string, unknown>> {
  return {
    session: node.session,
    id: node.id,
    kind: node.kind,
    status: node.status,
    lifecycle: node.lifecycle,
    ...(node.task !== undefined && { task: node.task }),
    ...(node.delivery !== undefined && { delivery: node.delivery }),
    ...(node.parentName !== undefined && { parent: node.parentName, from_anchor: node.fromAnchor ?? null }),
    ...(node.range !== undefined && { range: node.range }),
    created_at: node.createdAt,
    merges: node.merges.map(({ type, intoName, seq, range, at }) => ({
      type,
      into: intoName,
      seq,
      range,
      at,
    })),
    children: graph.children(node.id).map((child) => treeJson(graph, child)),
  };
}
