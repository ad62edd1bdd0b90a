import type { Db } from '../db/db.ts';
import { newestId } from '../search/text-index.ts';

/**
 * Runs an act that erases many entries, in the caller's transaction, with an index by which the redaction of an entry is found: the
 * trigger that lets nothing else be erased looks for it, and would read all redactions of the tape for each entry.
 * @param reads how many redactions that would be at most: all entries of the home are read to make the index, so that few do
 *   without
 */
export function withRedactionIndex<T>(db: Db, reads: number, act: () => T): T {
  if (reads <= newestId(db)) return act();
  db.exec(`CREATE INDEX entry_redacted ON entry (tape_id, mark, ref, seq) WHERE mark = 'redaction'`);
  const done = act();
  db.exec('DROP INDEX entry_redacted');
  return done;
}
