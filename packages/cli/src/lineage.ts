import {
  comparing,
  FileComparison,
  GraphError,
  parseRecord,
  readLines,
  SessionGraph,
  type SessionNode,
} from '@tapedeck/graph';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import {
  encodeLine,
  type LineageLine,
  type NewestQuery,
  nearNames,
  type ProgressOptions,
} from '@tapedeck/tape/store';
import type { FileHome } from './file-home.ts';
import { compareTail, differing, type FileStanding } from './graph-file.ts';
import type { Home } from './home.ts';
import { findSession } from './reference.ts';
import { goneAmong, goneIn } from './without-deleted.ts';

async function standingOf(
  { standing, line, fault }: FileComparison,
  store: HomeStore,
  home: Home,
): Promise<FileStanding> {
  if (standing === 'unreadable') return { is: 'behind', text: fault ?? '' };
  if (standing === 'behind') return await compareTail(store, home);
  return standing === 'differs' ? differing(`line ${line}`) : { is: standing };
}

/** Compares each line of the graph file with the database. */
export async function compareWhole(
  store: HomeStore,
  home: Home,
  { onProgress }: ProgressOptions = {},
): Promise<FileStanding> {
  if (home.graph === undefined) return { is: 'same' };
  using comparison = new FileComparison(home.graph);
  const lines = comparing(comparison, { read: (from) => store.lineage.read({ from }), encode: encodeLine });
  const total = store.lineageHash()?.g ?? 0;
  let done = 0;
  for (let next = lines.next(); next.done !== true && comparison.line === undefined; done += 1) {
    if (done > 0 && done % 100 === 0) onProgress?.({ done: Math.min(done, total), total });
    next = lines.next();
  }
  return await standingOf(comparison, store, home);
}

const pageSize = 100;

/** The graph of some lines, without the deleted sessions that it need not have. */
function graphOf(lines: readonly LineageLine[], named?: string): SessionGraph {
  const graph = SessionGraph.fromRecords(lines);
  const gone = goneAmong(graph.list(), named);
  if (gone.size === 0) return graph;
  return SessionGraph.fromRecords(lines.filter(({ session }) => !gone.has(session)));
}

/** Reads the trees of sessions one by one, by their roots in the order of creation, so that few are in memory. */
export function* readTrees(store: HomeStore): Generator<SessionGraph> {
  for (const deleted of [false, true])
    for (let after: string | null | undefined = null; after !== undefined; ) {
      const page: readonly SessionInfo[] = store.sessions.list({
        roots: true,
        all: true,
        allRealms: true,
        deleted,
        after,
        limit: pageSize,
      });
      for (const { id } of page) yield readTree(store, id);
      after = page.length < pageSize ? undefined : page.at(-1)?.id;
    }
}

/** Reads the trees of sessions one by one, the one in which something was said last first. */
export function* readNewestTrees(store: HomeStore): Generator<SessionGraph> {
  for (const id of store.newestRoots()) yield readTree(store, id);
}

/** Reads all sessions in parts, so that few are in memory. */
export function* readSessions(store: HomeStore): Generator<readonly SessionNode[]> {
  const gone = goneIn(store);
  for (const lines of store.linesBySession())
    yield SessionGraph.fromRecords(lines.filter(({ session }) => !gone.has(session))).list();
}

/** Reads a session that the user has named with its ancestors and descendants, from their lines of the database alone. */
export function readFamily(store: HomeStore, id: string): SessionGraph {
  return graphOf(store.familyOf(id), id);
}

/** Reads a session without a parent with its descendants. */
export function readTree(store: HomeStore, id: string): SessionGraph {
  return graphOf(store.familyOf(id));
}

/** Reads the newest sessions with their ancestors, from their lines of the database alone. */
export function readNewest(store: HomeStore, query: NewestQuery): SessionGraph {
  return graphOf(store.newestFamilies(query));
}

/**
 * Reads a part of a graph file, of which `whole` is the graph: the family of a session, or the sessions whose last line is
 * new enough, with their ancestors.
 */
export function readSelected(
  whole: SessionGraph,
  { graph: path }: FileHome,
  {
    name,
    since,
    n,
  }: {
    readonly name?: string | undefined;
    readonly since?: number | undefined;
    readonly n?: number | undefined;
  },
): SessionGraph {
  const named = name === undefined ? undefined : idIn(whole, name);
  const gone = goneAmong(whole.list(), named);
  if (named === undefined && since === undefined && n === undefined && gone.size === 0) return whole;
  const listed = whole.list().filter(({ id }) => !gone.has(id));
  const found =
    named !== undefined
      ? whole
          .lineage(named)
          .map(({ node }) => node)
          .filter(({ id }) => !gone.has(id))
      : listed
          .filter(({ updatedAt }) => since === undefined || Date.parse(updatedAt) >= since)
          .sort((a, b) => b.lastG - a.lastG)
          .slice(0, n)
          .flatMap((node) => [node, ...whole.ancestors(node.id)]);
  const ids = new Set(found.map(({ id }) => id));
  return SessionGraph.fromRecords(recordsOf(path, ids));
}

/** The records of a graph file about some sessions. */
function* recordsOf(path: string, ids: ReadonlySet<string>): Iterable<LineageLine> {
  for (const line of readLines(path)) {
    const parsed = parseRecord(line.kind === 'line' ? line.text : '');
    if (parsed.kind === 'record' && ids.has(parsed.record.session)) yield parsed.record;
  }
}

/**
 * The ULID of a session. A name that this realm does not have is looked for among all sessions.
 * @throws GRAPH_NO_SESSION with near names
 */
export function idOf(name: string, store: HomeStore): string {
  return findSession(store, name)?.id ?? idIn(SessionGraph.fromRecords(store.lineage.read()), name);
}

/**
 * The ULID of a session in a graph.
 * @throws GRAPH_NO_SESSION with near names
 */
export function idIn(graph: SessionGraph, name: string): string {
  const found = graph.find(name);
  if (found !== undefined) return found.id;
  try {
    graph.ancestors(name);
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    const known = graph.list().map(({ session }) => session);
    throw new GraphError(error.code, error.message, {
      data: { ...error.data, near: nearNames(name, known) },
      cause: error,
    });
  }
  throw new TypeError(`the graph has session ${name}, and did not find it`);
}
