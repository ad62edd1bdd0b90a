import Database from 'better-sqlite3';

/** A database file opened behind the store's back: it is closed with the block. */
export interface RawDb extends Disposable {
  run(sql: string, ...params: readonly unknown[]): number;
  all<Row>(sql: string, ...params: readonly unknown[]): Row[];
  exec(sql: string): void;
  /** Removes the triggers that keep a file append-only, as a forger would. */
  dropTriggers(): void;
}

export function rawDb(path: string): RawDb {
  const db = new Database(path, { fileMustExist: true });
  const all = <Row>(sql: string, ...params: readonly unknown[]) =>
    db.prepare<unknown[], Row>(sql).all(...params);
  return {
    run: (sql, ...params) => db.prepare(sql).run(...params).changes,
    all,
    exec: (sql) => {
      db.exec(sql);
    },
    dropTriggers: () => {
      for (const { name } of all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`))
        db.exec(`DROP TRIGGER ${name}`);
    },
    [Symbol.dispose]: () => {
      db.close();
    },
  };
}

const counted: ReadonlySet<string> = new Set(['message_count', 'last_speaker']);

/** All rows of the tables that hold facts, as text, without what is counted beside them. */
export function facts(db: RawDb): string {
  const tables = ['tape', 'entry', 'lineage'].map((table) => db.all(`SELECT * FROM ${table} ORDER BY rowid`));
  return JSON.stringify(tables, (column, value: unknown) => (counted.has(column) ? undefined : value));
}
