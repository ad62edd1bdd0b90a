import { TapeError } from '../errors.js';
                                              
                                            
import { schemaProblems } from './schema.js';

/**
 * Yields what SQLite's own checks report of pages, indexes and references, and schema differences. Reads the
 * whole file. A check that damage stops is reported as well; the others still run.
 */
export function* verifyFile(db    )                     {
  for (const check of [pageProblems, referenceProblems, schemaProblems])
    try {
      yield* check(db);
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
      yield damaged(error.message);
    }
}

function pageProblems(db    )            {
  return db
    .all                             ('PRAGMA integrity_check(100)')
    .map((row) => row.integrity_check)
    .filter((line) => line !== 'ok')
    .map(damaged);
}

function referenceProblems(db    )            {
  return db
    .all                                                  ('PRAGMA foreign_key_check')
    .map(({ table, rowid, parent }) =>
      damaged(`row ${rowid} of ${table} refers to a missing row of ${parent}`),
    );
}

function damaged(message        )          {
  return { code: 'database-damaged', session: null, seq: null, message };
}
