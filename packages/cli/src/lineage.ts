import { comparing, FileComparison, SessionGraph } from '@tapedeck/graph';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { encodeLine } from '@tapedeck/tape/store';
import { compareTail, differing, type FileStanding } from './graph-file.ts';
import type { Home } from './home.ts';

/** A graph from the database, and how the graph file compares with the database. */
export interface Drawn {
  readonly graph: SessionGraph;
  readonly standing: FileStanding;
}

/** Reads all sessions from the database, and compares each line of the graph file with it on the way. */
export async function readWhole(store: SqliteTapeStore, home: Home): Promise<Drawn> {
  using comparison = new FileComparison(home.graph);
  const graph = SessionGraph.fromRecords(
    comparing(comparison, { read: (from) => store.lineage.read({ from }), encode: encodeLine }),
  );
  const { standing, line, fault } = comparison;
  if (standing === 'unreadable') return { graph, standing: { is: 'behind', text: fault ?? '' } };
  if (standing === 'behind') return { graph, standing: await compareTail(store, home) };
  return { graph, standing: standing === 'differs' ? differing(`line ${line}`) : { is: standing } };
}

/** Reads a session with its ancestors and descendants, from their lines of the database alone. */
export function readFamily(store: SqliteTapeStore, id: string): SessionGraph {
  const ids: string[] = [];
  for (let at = store.sessions.find(id); at !== undefined; ) {
    ids.push(at.id);
    at = at.parentId === undefined ? undefined : store.sessions.find(at.parentId);
  }
  const below = [id];
  for (const parent of below)
    for (const child of store.sessions.list({ parent, all: true })) below.push(child.id);
  const lines = [...ids, ...below.slice(1)].flatMap((session) => [...store.lineage.read({ session })]);
  return SessionGraph.fromRecords(lines.sort((a, b) => a.g - b.g));
}
