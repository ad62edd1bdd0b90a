/**
 * SQLite and the database file: the connection, the schema, where a file may lie (`place.ts`), how files get their names
 * (`draft-file.ts`), and the wait for the write lock. Imports `owner`, `errors` and `crash-point`.
 */
import Database from 'better-sqlite3';
import { crashPoint } from '../crash-point.ts';
import { TapeError } from '../errors.ts';
import { lockWaitDefault, retryLocked, stillLocked } from './lock-wait.ts';
import { cannotOpen } from './place.ts';

/** A value that SQLite stores. */
export type SqlValue = string | number | null | Uint8Array;
type Params = Readonly<Record<string, SqlValue>>;

/** What every connection keeps to, a reader's and a copy's too, before it looks at a file that others may have made (M1). */
const safety = [
  'foreign_keys = ON',
  'trusted_schema = OFF',
  'cell_size_check = ON',
  'mmap_size = 0',
  ...(process.platform === 'darwin' ? ['fullfsync = ON', 'checkpoint_fullfsync = ON'] : []),
];

/**
 * One connection. The only file that knows better-sqlite3: statements are prepared once per text, every
 * write is an immediate transaction with a jittered retry, and SQLite's failures come out as TapeErrors.
 */
export class Db {
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Database.Statement>();
  /** Run an act in a transaction, and in a savepoint of the one under way; made once, since making one costs 5 µs. */
  readonly #transaction: Database.Transaction<(act: () => unknown) => unknown>;
  readonly #savepoint: Database.Transaction<(act: () => unknown) => unknown>;
  /** How many transactions this connection has committed. */
  commits = 0;
  /** How long an act waits for a lock, holding the thread, in milliseconds. */
  lockWaitMs: number = lockWaitDefault;

  /** Opens a file, which must be there, or `:memory:`. */
  constructor(path: string, { readonly = false }: { readonly?: boolean } = {}) {
    const inMemory = path === ':memory:';
    try {
      this.#db = new Database(path, {
        timeout: 20,
        readonly: readonly && !inMemory,
        fileMustExist: !inMemory,
      });
    } catch (cause) {
      throw cannotOpen(path, (cause as Error).message, cause);
    }
    try {
      for (const pragma of safety) guard(() => this.#db.pragma(pragma));
    } catch (error) {
      this.#db.close();
      throw error;
    }
    this.#savepoint = this.#db.transaction((act: () => unknown) => act());
    this.#transaction = this.#db.transaction((act: () => unknown) => {
      const result = act();
      crashPoint('commit/before');
      return result;
    });
  }

  get<Row>(sql: string, params: Params = {}): Row | undefined {
    return this.#try(() => this.#prepare(sql).get(params) as Row | undefined);
  }

  all<Row>(sql: string, params: Params = {}): Row[] {
    return this.#try(() => this.#prepare(sql).all(params) as Row[]);
  }

  /** Runs a statement and returns how many rows it changed. */
  run(sql: string, params: Params = {}): number {
    return guard(() => this.#prepare(sql).run(params).changes);
  }

  /** The rowid of the last insert on this connection. */
  insert(sql: string, params: Params): number {
    return guard(() => Number(this.#prepare(sql).run(params).lastInsertRowid));
  }

  /** As `write`, but gives up at once when somebody else holds the write lock. */
  tryWrite<T>(act: () => T): T {
    return guard(() => this.#transaction.immediate(act) as T);
  }

  /** Runs `act` in one immediate transaction: all of it or none. `act` does no I/O and awaits nothing. */
  write<T>(act: () => T): T {
    if (this.#db.inTransaction) return act();
    const result = this.#retry(() => guard(() => this.#transaction.immediate(act) as T));
    this.commits += 1;
    crashPoint('commit/after');
    return result;
  }

  /**
   * As `write`, and on disk when it returns, where durability is `fast` too: lines go to the graph file next, and a
   * power cut must not leave one there that the database lost.
   */
  writeThrough<T>(act: () => T): T {
    return this.#writeAt(2, act);
  }

  /** As `write`, without waiting for the disk: a kill loses nothing of it, a power cut may. */
  writeBehind<T>(act: () => T): T {
    return this.#writeAt(1, act);
  }

  #writeAt<T>(wanted: number, act: () => T): T {
    if (this.#db.inTransaction) return act();
    const synchronous = this.pragma('synchronous');
    if (synchronous === wanted) return this.write(act);
    this.pragma(`synchronous = ${wanted}`);
    try {
      return this.write(act);
    } finally {
      this.pragma(`synchronous = ${synchronous}`);
    }
  }

  /** Runs `act` on one snapshot of the file. */
  read<T>(act: () => T): T {
    if (this.#db.inTransaction) return act();
    return this.#retry(() => guard(() => this.#savepoint.deferred(act) as T));
  }

  /** Runs `act` inside the transaction under way so that its failure undoes only what it did itself. */
  savepoint<T>(act: () => T): T {
    return guard(() => this.#savepoint(act) as T);
  }

  /** As `write`, and what is freed is overwritten with zeros: elsewhere that costs, and nothing secret is freed. */
  writeAndWipe<T>(act: () => T): T {
    this.pragma('secure_delete = ON');
    try {
      return this.write(act);
    } finally {
      this.pragma('secure_delete = OFF');
    }
  }

  pragma(source: string): unknown {
    return this.#try(() => this.#db.pragma(source, { simple: true }));
  }

  exec(sql: string): void {
    guard(() => this.#db.exec(sql));
  }

  /** Writes the WAL back into the database and empties it; false when a reader or writer was in the way. */
  checkpoint(): boolean {
    const [row] = guard(() => this.#db.pragma('wal_checkpoint(TRUNCATE)')) as { busy: number }[];
    return row?.busy === 0;
  }

  /** Switches the journal; SQLite's busy handler is not used for this, so it is tried again. */
  switchJournal(mode: 'wal' | 'delete'): void {
    if (this.pragma('journal_mode') === mode) return;
    if (this.pragma(`journal_mode = ${mode}`) !== mode)
      throw new TapeError(
        'TAPE_CANNOT_OPEN',
        `cannot open the store: SQLite did not switch its journal to ${mode}`,
      );
  }

  /** A number that changes when another connection has committed; reading it costs no lock. */
  dataVersion(): number {
    return Number(this.pragma('data_version'));
  }

  /** Copies the database page by page while it is used, by SQLite's own backup: a file copy would miss the WAL. */
  async backup(file: string): Promise<void> {
    // Nobody else can have the file open then, or there is none: nothing changes under the copy.
    if (this.#db.memory || this.pragma('locking_mode') === 'exclusive') {
      await this.#db.backup(file);
      return;
    }
    // On one snapshot of a connection of its own: a copy of what goes on changing begins anew with every commit.
    const source = new Db(this.#db.name, { readonly: true });
    try {
      source.#db.exec('BEGIN');
      source.#db.prepare('SELECT count(*) FROM sqlite_schema').get();
      await source.#db.backup(file);
    } finally {
      source.close();
    }
  }

  close(): void {
    this.#db.close();
  }

  /** A read waits too: while another process makes the file new or recovers it, that one has it to itself. */
  #try<T>(act: () => T): T {
    return this.#db.inTransaction ? guard(act) : this.#retry(() => guard(act));
  }

  #retry<T>(act: () => T): T {
    try {
      return retryLocked(act, this.lockWaitMs);
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_LOCKED') throw error;
      // Read once, as it is: waiting for a lock to say who has it would not end.
      throw stillLocked(error, <Row>(sql: string) => this.#db.prepare<[], Row>(sql).all());
    }
  }

  /**
   * A bare parameter lets the planner look at its value, and then every new value plans the statement anew, which
   * costs up to ten times the query. Behind a plus it is an expression, planned once.
   */
  #prepare(sql: string): Database.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql.replaceAll('@', '+@'));
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** Turns SQLite's errors into ours; all others pass. */
function guard<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof TypeError && error.message === 'The database connection is not open')
      throw new TapeError('TAPE_CLOSED', 'cannot use the store: it is closed', { cause: error });
    if (!(error instanceof Database.SqliteError)) throw error;
    const { code, message } = error;
    if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'))
      throw new TapeError('TAPE_LOCKED', 'cannot write: another process holds the write lock', {
        cause: error,
      });
    // The statements are ours, so a table that is not there is one that the file has lost.
    const lost = code === 'SQLITE_ERROR' && /^no such (?:table|column)/.test(message);
    if (lost || code.startsWith('SQLITE_CORRUPT') || code.startsWith('SQLITE_NOTADB'))
      throw new TapeError('TAPE_CORRUPT', `cannot read the database: ${message}`, { cause: error });
    if (/^SQLITE_(?:FULL|IOERR|READONLY|CANTOPEN|PERM)/.test(code))
      throw new TapeError('TAPE_IO', `cannot use the database file: ${message}`, { cause: error });
    throw error;
  }
}
