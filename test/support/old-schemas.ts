import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { rawDb } from './raw-db.ts';

/** Turns a home of today into one of schema 0: what a build before `open_calls` left behind. */
export function toSchema0(path: string): void {
  using db = rawDb(path);
  db.dropTriggers();
  db.exec(`
    DROP INDEX lineage_link; DROP INDEX tape_running; DROP INDEX tape_spoken; DROP INDEX entry_kind; DROP TABLE open_run; DROP TABLE usage;
    DROP INDEX tape_ordinal; DROP INDEX tape_name_key; DROP INDEX tape_unfinished;
    ALTER TABLE tape DROP COLUMN ordinal; ALTER TABLE tape DROP COLUMN name_key;
    ALTER TABLE tape DROP COLUMN last_message_at;
    ALTER TABLE tape DROP COLUMN message_count; ALTER TABLE tape DROP COLUMN last_speaker;
    ALTER TABLE lease DROP COLUMN pid_ns; ALTER TABLE lease DROP COLUMN expires_up;
    CREATE TABLE older (
      alias TEXT PRIMARY KEY, tape_id INTEGER NOT NULL REFERENCES tape(id), reason TEXT NOT NULL,
      g INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO older SELECT alias, tape_id, reason, g FROM alias;
    DROP TABLE alias;
    ALTER TABLE older RENAME TO alias;
    DELETE FROM home WHERE key = 'id';
    DROP TABLE adopted; DROP TABLE absent; DROP TABLE open_calls; PRAGMA user_version = 0;`);
  db.all('PRAGMA wal_checkpoint(TRUNCATE)');
}

const golden = (name: string) => new URL(`golden/${name}`, import.meta.url);

/**
 * Writes the files of a home that a build with schema 1 made: `main` with an alias, four forks, one of a task that was
 * delegated, a fork of a fork, two merges and a redaction; an import; `Notes` beside `notes`; an archived session; one
 * that has the name `worker:{ULID}`; `shop`, which waits for an approval; and `s1` under another base.
 */
export function writeSchema1(home: { readonly db: string; readonly graph: string }): void {
  writeFileSync(home.db, gunzipSync(readFileSync(golden('home-schema-1/tape.db.gz'))), { mode: 0o600 });
  writeFileSync(home.graph, readFileSync(golden('home-schema-1/session_graph.jsonl')), { mode: 0o600 });
}

/**
 * Writes the database of a home that a build with schema 2 made: `main` with a merged child, and a child with a running
 * task; `cut`, `begun` and `live`, whose runs have no recorded end; `ended`; `waits`, which waits for an approval; and
 * `erased`, whose unanswered message was redacted.
 */
export function writeSchema2(home: { readonly db: string }): void {
  writeFileSync(home.db, gunzipSync(readFileSync(golden('home-schema-2/tape.db.gz'))), { mode: 0o600 });
}

/**
 * Writes the database of a home that a build with schema 3 made: `main` with a call, two questions, two answers and a
 * merged child; `steered`, with a message that no model sees; `erased`, whose first answer was redacted; `answers`, with
 * a call that is open; and `empty`, with an event.
 */
export function writeSchema3(home: { readonly db: string }): void {
  writeFileSync(home.db, gunzipSync(readFileSync(golden('home-schema-3/tape.db.gz'))), { mode: 0o600 });
}
