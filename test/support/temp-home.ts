import { existsSync, readFileSync } from 'node:fs';
import { openJournal } from '@tapedeck/graph/journal';
import { type Draft, openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { type CliOptions, type CliResult, type HereOptions, tape, tapeHere, tapeProcess } from './cli.ts';
import { memoryDir, type TempDir, tempDir } from './temp-dir.ts';

/** A tape home that goes away with the block: `using home = tempHome()`. */
export interface TempHome extends Disposable {
  readonly path: string;
  readonly db: string;
  readonly graph: string;
  /** The path of another file in it. */
  file(name: string): string;
  /** Opens the store as the command line does. */
  open(): SqliteTapeStore;
  /** Makes a session of these entries, without the command line. */
  session(name: string, ...drafts: Draft[]): void;
  /** Runs `tape` in this home: on a push in this process, in full but for the first of each verb. */
  tape(args: readonly string[], options?: Omit<CliOptions, 'home' | 'node'>): Promise<CliResult>;
  /** The same as a process of its own, whatever the size. */
  process(args: readonly string[], options?: Omit<CliOptions, 'home'>): Promise<CliResult>;
  /** The same in this process, from the sources, which is quicker. */
  here(args: readonly string[], options?: Omit<HereOptions, 'home'>): Promise<CliResult>;
  /** How many rows each table has, and the bytes of the graph file: equal when nothing was written. */
  contents(): Contents;
  /** The lines of the graph file, parsed. */
  lines(): GraphLine[];
}

interface Contents {
  readonly rows: Readonly<Record<string, number>>;
  readonly graph: string;
}

type GraphLine = Readonly<Record<string, unknown>>;

export function tempHome(): TempHome {
  return homeIn(tempDir());
}

/** The same in memory where the system has such a place: a kill loses nothing of what was written there either. */
export function memoryHome(): TempHome {
  return homeIn(memoryDir());
}

/** A home in a directory, with which it goes away. */
export function homeIn(dir: TempDir): TempHome {
  const db = dir.file('tape.db');
  const graph = dir.file('session_graph.jsonl');
  const open = () => openTapeStore(db, { journal: openJournal(graph), durability: 'fast' });
  const graphText = () => (existsSync(graph) ? readFileSync(graph, 'utf8') : '');
  return {
    path: dir.path,
    db,
    graph,
    file: dir.file,
    open,
    session: (name, ...drafts) => {
      using store = open();
      store.sessions.open(name);
      if (drafts.length > 0) store.entries.append(name, drafts);
    },
    tape: (args, options) => tape(args, { ...options, home: dir.path }),
    process: (args, options) => tapeProcess(args, { ...options, home: dir.path }),
    here: (args, options) => tapeHere(args, { ...options, home: dir.path }),
    contents: () => ({ rows: rowCounts(db), graph: graphText() }),
    lines: () =>
      graphText()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as GraphLine),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

function rowCounts(file: string): Record<string, number> {
  const db = new Database(file, { readonly: true });
  try {
    const tables = db
      .prepare<[], { name: string }>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'entry_fts%' ORDER BY name",
      )
      .all();
    return Object.fromEntries(
      tables.map(({ name }) => [
        name,
        db.prepare<[], number>(`SELECT count(*) FROM "${name}"`).pluck().get() ?? 0,
      ]),
    );
  } finally {
    db.close();
  }
}
