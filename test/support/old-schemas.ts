import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { rawDb } from './raw-db.ts';

/** Turns a home of today into one of schema 0: what a build before `open_calls` left behind. */
export function toSchema0(path: string): void {
  using db = rawDb(path);
  db.dropTriggers();
  db.exec(`
    DROP INDEX tape_ordinal; DROP INDEX tape_name_key; DROP INDEX tape_unfinished;
    ALTER TABLE tape DROP COLUMN ordinal; ALTER TABLE tape DROP COLUMN name_key;
    ALTER TABLE tape DROP COLUMN last_message_at;
    ALTER TABLE lease DROP COLUMN pid_ns; ALTER TABLE lease DROP COLUMN expires_up;
    CREATE TABLE older (
      alias TEXT PRIMARY KEY, tape_id INTEGER NOT NULL REFERENCES tape(id), reason TEXT NOT NULL,
      g INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO older SELECT alias, tape_id, reason, g FROM alias;
    DROP TABLE alias;
    ALTER TABLE older RENAME TO alias;
    DELETE FROM home WHERE key = 'id';
    DROP TABLE open_calls; PRAGMA user_version = 0;`);
  db.all('PRAGMA wal_checkpoint(TRUNCATE)');
}

const golden = (name: string) => new URL(`golden/home-schema-1/${name}`, import.meta.url);

/**
 * Writes the files of a home that a build with schema 1 made: `main` with an alias, four forks, one of a task that was
 * delegated, a fork of a fork, two merges and a redaction; an import; `Notes` beside `notes`; an archived session; one
 * that has the name `worker:{ULID}`; `shop`, which waits for an approval; and `s1` under another base.
 */
export function writeSchema1(home: { readonly db: string; readonly graph: string }): void {
  writeFileSync(home.db, gunzipSync(readFileSync(golden('tape.db.gz'))), { mode: 0o600 });
  writeFileSync(home.graph, readFileSync(golden('session_graph.jsonl')), { mode: 0o600 });
}
