import { TapeError } from '../errors.ts';
import { tables, triggers } from '../sqlite/schema.ts';
import { Db } from '../sqlite/sqlite.ts';

/**
 * Returns what SQLite's own checks report of pages, indexes and references, and schema differences. Reads the
 * whole file. A check that damage stops is reported as well; the others still run.
 */
export function databaseFaults(db: Db): string[] {
  return [pageFaults, referenceFaults, schemaFaults].flatMap((check) => {
    try {
      return check(db);
    } catch (error) {
      if (error instanceof TapeError && error.code === 'TAPE_CORRUPT') return error.message;
      throw error;
    }
  });
}

function pageFaults(db: Db): string[] {
  return db
    .all<{ integrity_check: string }>('PRAGMA integrity_check(100)')
    .map((row) => row.integrity_check)
    .filter((line) => line !== 'ok');
}

function referenceFaults(db: Db): string[] {
  return db
    .all<{ table: string; rowid: number; parent: string }>('PRAGMA foreign_key_check')
    .map(({ table, rowid, parent }) => `row ${rowid} of ${table} refers to a missing row of ${parent}`);
}

/**
 * Compares the schema with that of this build. Without one of its triggers, the file is not append-only; an
 * added trigger can do anything.
 */
function schemaFaults(db: Db): string[] {
  const expected = new Db(':memory:');
  try {
    expected.exec(tables + triggers);
    const [ours, found] = [schemaOf(expected), schemaOf(db)];
    const lacking = [...ours].flatMap(([what, sql]) =>
      found.get(what) === sql ? [] : [`${what} is ${found.has(what) ? 'changed' : 'missing'}`],
    );
    const more = [...found.keys()].filter((what) => !ours.has(what));
    return [...lacking, ...more.map((what) => `${what} does not belong in a tape home`)];
  } finally {
    expected.close();
  }
}

/**
 * Returns the SQL of every table, index and trigger, without those that SQLite and its search index create
 * internally.
 */
function schemaOf(db: Db): Map<string, string> {
  const rows = db.all<{ type: string; name: string; sql: string }>(
    `SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*' AND name NOT GLOB 'entry_fts_*'`,
  );
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, sql]));
}
