import type { Db } from '../db/db.ts';
import { TapeError } from '../errors.ts';
import { dropIndex } from '../search/text-index.ts';
import { tables, triggers } from '../sqlite/schema.ts';
import { SqliteDb } from '../sqlite/sqlite.ts';
import type { Problem } from './problem.ts';

/** The SQL of tables, indexes and triggers, by their type and name: `trigger entry_update`. */
type Schema = ReadonlyMap<string, string>;

/** The search index is a table that is rebuilt from the entries. */
const searchTable = 'table entry_fts';

/** The problems that `mendSchema` repairs, by the objects that they are about. */
const codes = { trigger: 'trigger-wrong', index: 'index-wrong', search: 'search-wrong' } as const;

/** The code of a problem of the schema that can be repaired. */
export type SchemaCode = (typeof codes)[keyof typeof codes];

/**
 * Yields the differences of the schema from that of this build. Without one of its triggers, the file is not
 * append-only; an added trigger can do anything.
 */
export function* schemaProblems(db: Db): Generator<Problem> {
  const [ours, found] = [expectedSchema(), schemaOf(db)];
  for (const [what, sql] of ours)
    if (found.get(what) !== sql)
      yield problem(codeOf(what), `${what} is ${found.has(what) ? 'changed' : 'missing'}`);
  for (const what of found.keys())
    if (!ours.has(what)) yield problem('database-damaged', `${what} does not belong in a tape home`);
}

/**
 * Refuses a file in which the writes of this process would run what others added: a trigger, view or table that is
 * changed or does not belong there. One that is missing adds nothing.
 * @throws TAPE_CORRUPT
 */
export function assertOwnSchema(db: Db): void {
  const ours = expectedSchema();
  for (const [what, sql] of schemaOf(db)) {
    if (what.startsWith('index ') || ours.get(what) === sql) continue;
    const why = ours.has(what) ? 'is changed' : 'does not belong in a tape home';
    throw new TapeError('TAPE_CORRUPT', `cannot trust '${db.file}': ${what} ${why}`, {
      data: { file: db.file },
    });
  }
}

/** Whether a code is that of a problem that `mendSchema` repairs. */
export function isSchemaCode(code: string): code is SchemaCode {
  return Object.values<string>(codes).includes(code);
}

/**
 * Puts back the triggers or indexes that are missing or changed, or empties the search index, which the next
 * search fills. One transaction for each, so that an index that duplicate rows make impossible stops no other.
 * @returns whether all of them are back
 */
export function mendSchema(db: Db, code: SchemaCode): boolean {
  const wrong = [...expectedSchema()].filter(
    ([what, sql]) => codeOf(what) === code && schemaOf(db).get(what) !== sql,
  );
  return wrong.map(([what, sql]) => isPutBack(db, what, sql)).every((isBack) => isBack);
}

function isPutBack(db: Db, what: string, sql: string): boolean {
  try {
    db.write(() => {
      if (what === searchTable) dropIndex(db);
      else {
        const [type, name] = what.split(' ');
        db.exec(`DROP ${type} IF EXISTS "${name}"`);
        db.exec(sql);
      }
    });
    return true;
  } catch (error) {
    if (error instanceof TapeError && error.code !== 'TAPE_CORRUPT') throw error;
    return false; // The rows do not allow the index, or its table is missing: that is reported by itself.
  }
}

function codeOf(what: string): Problem['code'] {
  if (what === searchTable) return codes.search;
  if (what.startsWith('trigger ')) return codes.trigger;
  return what.startsWith('index ') ? codes.index : 'database-damaged';
}

function problem(code: Problem['code'], message: string): Problem {
  return { code, session: null, seq: null, message };
}

function expectedSchema(): Schema {
  const expected = new SqliteDb(':memory:');
  try {
    expected.exec(tables + triggers);
    return schemaOf(expected);
  } finally {
    expected.close();
  }
}

/** The tables that SQLite and its search index create for themselves; so are indexes without SQL. */
const internal = [
  ...['sqlite_sequence', 'sqlite_stat1', 'sqlite_stat4'],
  ...['data', 'idx', 'docsize', 'config'].map((part) => `entry_fts_${part}`),
]
  .map((name) => `'${name}'`)
  .join(', ');

/** Returns the SQL of every table, index, view and trigger, without those that SQLite creates for itself. */
function schemaOf(db: Db): Schema {
  const rows = db.all<{ type: string; name: string; sql: string }>(
    `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND NOT (type = 'table' AND name IN (${internal}))`,
  );
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, sql]));
}
