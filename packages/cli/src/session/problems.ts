import type { JournalReport } from '@tapedeck/graph';
import type { SqliteTapeStore } from '@tapedeck/tape';
import type { Problem } from '@tapedeck/tape/store';
import type { Home } from '../home.ts';

/** One problem, as `--json` prints it. */
export interface Found {
  readonly code: string;
  readonly session: string | null;
  readonly seq: number | null;
  readonly message: string;
}

/**
 * Verifies all tapes, or one session and its inherited entries. An error that stops the check is a problem
 * too.
 */
export function* verifyTapes(store: SqliteTapeStore, ref: string | undefined): Iterable<Found> {
  try {
    for (const problem of store.verify(ref)) yield problem satisfies Problem;
  } catch (error) {
    yield { code: 'database-damaged', session: null, seq: null, message: (error as Error).message };
  }
}

/** Verifies the graph file; `g` is the number of its last record. */
export async function verifyGraph(
  store: SqliteTapeStore,
  home: Home,
): Promise<{ problems: Found[]; g: number }> {
  const { checkJournal, firstPrev, readLines } = await import('@tapedeck/graph');
  const { tailOf } = await import('@tapedeck/graph/journal');
  try {
    const report = checkJournal(readLines(home.graph));
    const isForeign = report.records === 0 && tailOf(home.graph).hash !== firstPrev;
    const problems = isForeign ? [foreignFile] : [...compareGraph(store, report)];
    return { problems, g: report.g };
  } catch (error) {
    const { message } = error as Error;
    return { problems: [{ code: 'graph-unreadable', session: null, seq: null, message }], g: 0 };
  }
}

const foreignFile: Found = {
  code: 'graph-foreign',
  session: null,
  seq: null,
  message: 'session_graph.jsonl: has text, and no record',
};

/** The problems of the file itself, then its differences from the database. The file may lag behind. */
function* compareGraph(store: SqliteTapeStore, report: JournalReport): Iterable<Found> {
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
      message: `session_graph.jsonl: line ${report.g} differs from the database`,
    };
}
