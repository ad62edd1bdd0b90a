import { tables, triggers } from '../sqlite/schema.ts';
import { Db } from '../sqlite/sqlite.ts';

/** What SQLite itself says of the file: pages, indexes and references; and whether its schema is ours. Reads all of it. */
export function databaseFaults(db: Db): string[] {
  const integrity = db
    .all<{ integrity_check: string }>('PRAGMA integrity_check(100)')
    .map((row) => row.integrity_check);
  const references = db
    .all<{ table: string; rowid: number; parent: string }>('PRAGMA foreign_key_check')
    .map(({ table, rowid, parent }) => `row ${rowid} of ${table} refers to nothing in ${parent}`);
  return [...integrity.filter((line) => line !== 'ok'), ...references, ...schemaFaults(db)];
}

/**
 * What the schema lacks, has otherwise, or has beside what this build makes: a trigger that is gone holds nothing
 * append-only, and one that was put in does what somebody else wants.
 */
function schemaFaults(db: Db): string[] {
  const expected = new Db(':memory:');
  try {
    expected.exec(tables + triggers);
    const [ours, found] = [schemaOf(expected), schemaOf(db)];
    const lacking = [...ours].flatMap(([what, sql]) =>
      found.get(what) === sql ? [] : [`${what} is ${found.has(what) ? 'not as it was made' : 'missing'}`],
    );
    const more = [...found.keys()].filter((what) => !ours.has(what));
    return [...lacking, ...more.map((what) => `${what} is not of a tape home`)];
  } finally {
    expected.close();
  }
}

/** The text of every table, index and trigger; what SQLite and its search index make for themselves is theirs. */
function schemaOf(db: Db): Map<string, string> {
  const rows = db.all<{ type: string; name: string; sql: string }>(
    `SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*' AND name NOT GLOB 'entry_fts_*'`,
  );
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, sql]));
}
