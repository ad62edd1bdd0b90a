import Database from 'better-sqlite3';

export type Synchronous = 'FULL' | 'NORMAL';

/** A bare better-sqlite3 handle set up as the store sets up its own. */
export function rawHandle(path: string, synchronous: Synchronous): Database.Database {
  const db = new Database(path);
  db.pragma('page_size = 4096');
  db.pragma('journal_mode = WAL');
  db.pragma(`synchronous = ${synchronous}`);
  db.pragma('wal_autocheckpoint = 2000');
  db.pragma('temp_store = MEMORY');
  return db;
}

/** The physical limit of an append: a table of texts, and one insert of the same bytes. */
export interface RawTable extends Disposable {
  insert(text: string): void;
  insertAll(texts: readonly string[]): void;
}

export function rawTable(path: string, synchronous: Synchronous): RawTable {
  const db = rawHandle(path, synchronous);
  db.exec('CREATE TABLE entry (id INTEGER PRIMARY KEY, payload TEXT NOT NULL) STRICT');
  const statement = db.prepare('INSERT INTO entry (payload) VALUES (?)');
  const insert = (text: string) => {
    statement.run(text);
  };
  const insertAll = db.transaction((texts: readonly string[]) => {
    for (const text of texts) insert(text);
  });
  return {
    insert,
    insertAll: (texts) => insertAll.immediate(texts),
    [Symbol.dispose]: () => {
      db.close();
    },
  };
}
