import type { Db } from '../db/db.ts';
import { TapeError } from '../errors.ts';
import type { Problem } from './problem.ts';
import { schemaProblems } from './schema.ts';

/**
 * Yields what SQLite's own checks report of pages, indexes and references, and schema differences. Reads the
 * whole file. A check that damage stops is reported as well; the others still run.
 */
export function* verifyFile(db: Db): Generator<Problem> {
  for (const check of [pageProblems, referenceProblems, schemaProblems])
    try {
      yield* check(db);
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
      yield damaged(error.message);
    }
}

function pageProblems(db: Db): Problem[] {
  return db
    .all<{ integrity_check: string }>('PRAGMA integrity_check(100)')
    .map((row) => row.integrity_check)
    .filter((line) => line !== 'ok')
    .map(damaged);
}

function referenceProblems(db: Db): Problem[] {
  return db
    .all<{ table: string; rowid: number; parent: string }>('PRAGMA foreign_key_check')
    .map(({ table, rowid, parent }) =>
      damaged(`row ${rowid} of ${table} refers to a missing row of ${parent}`),
    );
}

function damaged(message: string): Problem {
  return { code: 'database-damaged', session: null, seq: null, message };
}
