import type { JournalReport } from '@tapedeck/graph';
import { type Problem, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import type { Home } from './home.ts';

/** One thing that is wrong, as `--json` gives it. */
export interface Found {
  readonly code: string;
  readonly session: string | null;
  readonly seq: number | null;
  readonly message: string;
}

/** Damage to tapes, or to one session and all it inherits. */
export function* verifyTapes(store: SqliteTapeStore, ref: string | undefined): Iterable<Found> {
  try {
    for (const problem of store.verify(ref)) yield problem satisfies Problem;
  } catch (error) {
    // A page that SQLite itself cannot read is damage to tell, not a reason to stop without a report.
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    const { session = null, seq = null } = error.data as { session?: string; seq?: number };
    yield { code: 'database-damaged', session, seq, message: error.message };
  }
}

export async function readJournal(home: Home): Promise<JournalReport> {
  const { checkJournal, readLines } = await import('@tapedeck/graph');
  return checkJournal(readLines(home.graph));
}

/** The file checked by itself, then against the database: one may lag behind, never differ. */
export function* verifyGraph(store: SqliteTapeStore, report: JournalReport): Iterable<Found> {
  for (const { code, line, message } of report.problems)
    yield {
      code: `graph-${code}`,
      session: null,
      seq: null,
      message: `session_graph.jsonl line ${line}: ${message}`,
    };
  if (report.problems.length > 0 || report.g === 0) return;
  const recorded = store.lineageHash(report.g);
  if (recorded?.hash !== report.hash)
    yield {
      code: 'graph-differs',
      session: null,
      seq: null,
      message: `session_graph.jsonl: its line ${report.g} is not the one in the database`,
    };
}
