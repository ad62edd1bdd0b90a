import type { Db } from '../db/db.ts';
import type { Problem } from './problem.ts';

/** The columns that refer to rows of other tables, by their tables. */
const references: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  tape: { parent_id: 'tape.id' },
  entry: { tape_id: 'tape.id' },
  open_calls: { tape_id: 'tape.id' },
  open_run: { tape_id: 'tape.id' },
  usage: { tape_id: 'tape.id' },
  lineage: { tape_id: 'tape.id', peer_id: 'tape.id' },
  lease: { tape_id: 'tape.id' },
  inbox: { tape_id: 'tape.id' },
  alias: { tape_id: 'tape.id' },
  blob_ref: { hash: 'blob.hash', entry_id: 'entry.id' },
  adopted: { tape_id: 'tape.id' },
  absent: { tape_id: 'tape.id' },
};

/** Yields the rows that refer to a missing row: a server keeps them from coming, but not from its owner. */
export function* verifyReferences(db: Db): Generator<Problem> {
  for (const [table, columns] of Object.entries(references))
    for (const [column, to] of Object.entries(columns)) {
      const [parent, key] = to.split('.');
      const { rows } = db.get<{ rows: number }>(
        `SELECT count(*) AS rows FROM ${table} c LEFT JOIN ${parent} p ON p.${key} = c.${column}
           WHERE c.${column} IS NOT NULL AND p.${key} IS NULL`,
      ) ?? { rows: 0 };
      for (let row = 0; row < rows; row += 1)
        yield {
          code: 'database-damaged',
          session: null,
          seq: null,
          message: `a row of ${table} refers by its ${column} to a missing row of ${parent}`,
        };
    }
}
