import { rawDb } from './raw-db.ts';

/** Turns a home of today into one of schema 0: what a build before `open_calls` left behind. */
export function toSchema0(path: string): void {
  using db = rawDb(path);
  const later = db.all<{ name: string }>(
    `SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'blob%'`,
  );
  for (const { name } of later) db.exec(`DROP TRIGGER ${name}`);
  db.exec('DROP TABLE open_calls; PRAGMA user_version = 0');
  db.all('PRAGMA wal_checkpoint(TRUNCATE)');
}
