import { type HomeStore, openTapeStore } from '@tapedeck/tape';
import type { Client } from 'pg';
import { rawDb } from './raw-db.ts';

/** A value of a column, as both databases have it. */
type Value = number | string | Uint8Array | null;

/** One change that a forger makes to one row: of a column, or of all of it. */
export interface Change {
  readonly table: string;
  /** The row, by the columns of its key. */
  readonly row: Readonly<Record<string, Value>>;
  /** Absent: the row is deleted. */
  readonly set?: { readonly column: string; readonly value: Value };
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly pk: number;
  readonly notnull: number;
}

/** What a forger puts in place of a value of each type of column. */
function othersOf(type: string, value: Value): readonly Value[] {
  if (type === 'BLOB')
    return [
      null,
      new Uint8Array(),
      Uint8Array.of(0),
      (value as Uint8Array | null)?.map((byte) => byte ^ 1) ?? null,
    ];
  if (type === 'TEXT')
    return [
      null,
      '',
      'x',
      `${value ?? ''}x`,
      'null',
      '[]',
      '{}',
      String(value).replace(/[a-z](?=[^a-z]*$)/, 'q'),
    ];
  if (type === 'REAL') return [null, 0, -1, 1.5];
  return [null, 0, 1, 2, -1, Number(value) + 1, 99];
}

function isSame(one: Value, other: Value): boolean {
  return one instanceof Uint8Array && other instanceof Uint8Array
    ? Buffer.compare(one, other) === 0
    : one === other;
}

/** All changes of the rows of a file that its columns can take, in the tables that a home on a server has, too. */
export function* changesOf(path: string): Generator<Change> {
  using db = rawDb(path);
  const tables = db.all<{ name: string }>(
    `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'entry_fts%' ORDER BY name`,
  );
  for (const { name: table } of tables) {
    const columns = db.all<Column>('SELECT name, type, pk, "notnull" FROM pragma_table_info(?)', table);
    const keys = columns.filter(({ pk }) => pk > 0).map(({ name }) => name);
    for (const values of db.all<Record<string, Value>>(
      `SELECT * FROM ${table} ORDER BY ${keys.join(', ')}`,
    )) {
      const row = Object.fromEntries(keys.map((key) => [key, values[key] ?? null]));
      yield { table, row };
      for (const { name: column, type, pk, notnull } of columns) {
        const old = values[column] ?? null;
        for (const value of new Set(othersOf(type, old)))
          if (!isSame(value, old) && !(value === null && (notnull === 1 || pk > 0)))
            yield { table, row, set: { column, value } };
      }
    }
  }
}

function literal(value: Value, blob: (hex: string) => string): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  return blob(Buffer.from(value).toString('hex'));
}

/** The statement of a change. */
function sqlOf({ table, row, set }: Change, blob: (hex: string) => string): string {
  const where = Object.entries(row).map(([key, value]) => `"${key}" = ${literal(value, blob)}`);
  return set === undefined
    ? `DELETE FROM ${table} WHERE ${where.join(' AND ')}`
    : `UPDATE ${table} SET "${set.column}" = ${literal(set.value, blob)} WHERE ${where.join(' AND ')}`;
}

/** What a home finds, but for what depends on the time: the code, the session and the position of each. */
export function foundIn(home: HomeStore): readonly string[] {
  const found: string[] = [];
  for (const { code, session, seq } of home.verify()) found.push(`${code} ${session} ${seq}`);
  for (const { code } of home.verifyDatabase()) found.push(`${code} of the database`);
  for (const { code, session } of home.examine())
    if (code !== 'stale-lease') found.push(`${code} ${session}`);
  return found.toSorted();
}

/** What is found in a file once a change was made; undefined where the file does not take the change. */
export function foundInFile(path: string, change: Change): readonly string[] | undefined {
  {
    using db = rawDb(path);
    const triggers = db.all<{ sql: string }>(`SELECT sql FROM sqlite_schema WHERE type = 'trigger'`);
    db.exec('PRAGMA foreign_keys = OFF');
    db.dropTriggers();
    try {
      db.run(sqlOf(change, (hex) => `x'${hex}'`));
    } catch {
      return undefined;
    } finally {
      for (const { sql } of triggers) db.exec(sql);
    }
  }
  using store = openTapeStore(path, { readonly: true });
  return foundIn(store);
}

/** A forger who owns the tables of a home on a server: its triggers are off, and each change is taken back. */
export async function serverForger(client: Client) {
  await client.query('SET session_replication_role = replica');
  const saved = new Set<string>();
  return {
    /** False: the server does not take the change. */
    make: async (change: Change): Promise<boolean> => {
      const { table } = change;
      if (!saved.has(table)) await client.query(`CREATE TEMP TABLE saved_${table} AS TABLE ${table}`);
      saved.add(table);
      try {
        await client.query(sqlOf(change, (hex) => `'\\x${hex}'::bytea`));
        return true;
      } catch {
        return false;
      }
    },
    undo: async ({ table }: Change): Promise<void> => {
      await client.query(`DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM saved_${table}`);
    },
  };
}
