import type { Db } from '../db/db.ts';

/**
 * Runs an act that erases many entries, in the caller's transaction, with an index by which the redaction of an entry is found: the
 * trigger that lets nothing else be erased looks for it, and would read all redactions of the tape for each entry.
 */
export function withRedactionIndex<T>(db: Db, act: () => T): T {
  db.exec(`CREATE INDEX entry_redacted ON entry (tape_id, mark, ref, seq) WHERE mark = 'redaction'`);
  const done = act();
  db.exec('DROP INDEX entry_redacted');
  return done;
}
