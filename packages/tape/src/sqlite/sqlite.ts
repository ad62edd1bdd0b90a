/**
 * SQLite and the database file: the connection, the schema, the checks of a file's place (`place.ts`), atomic
 * new files (`draft-file.ts`), the wait for the write lock, and locks alone (`take-lock.ts`). Imports `db`, `owner`, `origin`, `errors`, `progress`
 * and `crash-point`.
 */
import Database from 'better-sqlite3';
import { crashPoint } from '../crash-point.ts';
import type { Db, Params, Values } from '../db/db.ts';
import { doingFirst, type Watching, WriteCheck } from '../db/write-check.ts';
import { TapeError } from '../errors.ts';
import { type Elsewhere, nothingElsewhere } from '../origin/elsewhere.ts';
import type { OnProgress } from '../progress.ts';
import { isLocked, lockWaitDefault, lockWaitMin, retryLocked, stillLocked } from './lock-wait.ts';
import { cannotOpen, roomAt } from './place.ts';

type Transaction = Database.Transaction<(act: () => unknown) => unknown>;

/**
 * Settings of every connection, also for reading and copying, before it reads a file that another program may
 * have made.
 */
const safety = [
  'foreign_keys = ON',
  'trusted_schema = OFF',
  'cell_size_check = ON',
  'mmap_size = 0',
  ...(process.platform === 'darwin' ? ['fullfsync = ON', 'checkpoint_fullfsync = ON'] : []),
];

/** 4 MB of pages in place of 16: who only reads looks at most of them once, and the system has them, too. */
const readerCache = 'cache_size = -4000';

/** The statement that applies settings: one of many costs less than many. */
export function pragmas(settings: readonly string[]): string {
  return settings.map((setting) => `PRAGMA ${setting};`).join('\n');
}

/**
 * One connection, and the only code that uses better-sqlite3. It prepares each statement once per text, runs
 * every write in an immediate transaction with random retries, and turns SQLite's errors into TapeErrors.
 */
export class SqliteDb implements Db {
  readonly hasFile = true;
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Database.Statement>();
  /** How a write waits for the disk, as the file was opened. */
  #synchronous: number | undefined;
  /**
   * Run an act in a transaction, and in a savepoint of the open one. Made once, since making one costs 5 µs, and at the
   * first use: the first of a connection prepares nine statements, and who reads one view has no transaction.
   */
  #transactions: { readonly transaction: Transaction; readonly savepoint: Transaction } | undefined;
  readonly #writeCheck = new WriteCheck();
  /** Number of transactions that this connection has committed. */
  commits = 0;
  /** Whether it reads a private copy, because the file cannot be read in place. */
  isCopy = false;
  /** The path that it was opened by, also when it reads a copy. */
  file = ':memory:';
  /** What the file contained when it came to this user and machine. */
  elsewhere: Elsewhere = nothingElsewhere;
  /** The first page has few rows, since one may have many MB. */
  readonly pageRows: Db['pageRows'] = { first: 2, most: 128 };
  /** How long an act blocks the thread to wait for a lock, in milliseconds. */
  lockWaitMs: number = lockWaitDefault;

  /**
   * Opens an existing file, or `:memory:`.
   * @throws TAPE_CANNOT_OPEN
   */
  constructor(path: string, { readonly = false }: { readonly?: boolean } = {}) {
    const inMemory = path === ':memory:';
    try {
      this.#db = new Database(path, {
        // SQLite's own wait doubles its pauses: `retryLocked` waits instead.
        timeout: 1,
        readonly: readonly && !inMemory,
        fileMustExist: !inMemory,
      });
    } catch (cause) {
      throw cannotOpen(path, (cause as Error).message, cause);
    }
    try {
      this.exec(pragmas(readonly ? [...safety, readerCache] : safety));
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  #made() {
    this.#transactions ??= {
      savepoint: this.#db.transaction((act: () => unknown) => act()),
      transaction: this.#db.transaction((act: () => unknown) => {
        const result = this.#writeCheck.run(act);
        crashPoint('commit/before');
        return result;
      }),
    };
    return this.#transactions;
  }

  get #transaction(): Transaction {
    return this.#made().transaction;
  }

  get #savepoint(): Transaction {
    return this.#made().savepoint;
  }

  get<Row>(sql: string, params: Params | Values = {}): Row | undefined {
    try {
      return this.#prepare(sql).get(params) as Row | undefined;
    } catch (error) {
      return this.#again(error, () => this.#prepare(sql).get(params) as Row | undefined);
    }
  }

  all<Row>(sql: string, params: Params | Values = {}): Row[] {
    try {
      return this.#prepare(sql).all(params) as Row[];
    } catch (error) {
      return this.#again(error, () => this.#prepare(sql).all(params) as Row[]);
    }
  }

  /** Runs a statement and returns the number of changed rows. */
  run(sql: string, params: Params | Values = {}): number {
    try {
      return this.#prepare(sql).run(params).changes;
    } catch (error) {
      throw typed(this.#db.name, error);
    }
  }

  must(sql: string, params: Params | Values, orElse: () => Error): void {
    if (this.run(sql, params) === 0) throw orElse();
  }

  /** Runs an insert and returns its rowid. */
  insert(sql: string, params: Params | Values): number {
    try {
      return Number(this.#prepare(sql).run(params).lastInsertRowid);
    } catch (error) {
      throw typed(this.#db.name, error);
    }
  }

  forgetWords(entries: readonly number[]): void {
    for (const id of entries) this.run('DELETE FROM entry_fts WHERE rowid = ?', [id]);
  }

  /** Like `write`, but throws TAPE_LOCKED when another connection holds the write lock for more than a moment. */
  tryWrite<T>(act: () => T): T {
    const tried = () => guard(this.#db.name, () => this.#transaction.immediate(act) as T);
    try {
      return tried();
    } catch (error) {
      if (!isLocked(error)) throw error;
      return retryLocked(error, tried, lockWaitMin);
    }
  }

  /**
   * Runs `act` in one immediate transaction, all or nothing. `act` does no I/O of its own and awaits nothing.
   */
  write<T>(act: () => T): T {
    if (this.#db.inTransaction) return act();
    const result = doingFirst(() => this.#committed(act));
    this.#writeCheck.committed();
    this.commits += 1;
    crashPoint('commit/after');
    return result;
  }

  watched<T>(watching: Watching, act: () => T): T {
    return this.#writeCheck.during(watching, act);
  }

  #committed<T>(act: () => T): T {
    try {
      return this.#transaction.immediate(act) as T;
    } catch (error) {
      return this.#again(error, () => this.#transaction.immediate(act) as T);
    }
  }

  /**
   * Like `write`, and synced to disk when it returns, with durability `fast` too: the caller writes to the
   * graph file next, and a power loss must not leave a line there that the database lost.
   */
  writeThrough<T>(act: () => T): T {
    return this.#writeAt(2, act);
  }

  /** Keeps few pages in memory from now on, as who only reads does: what is staged is large, and written once. */
  keepFewPages(): void {
    this.exec(pragmas([readerCache]));
  }

  /** Like `write`, without waiting for the disk: it survives a kill, but not a power loss. */
  writeBehind<T>(act: () => T): T {
    return this.#writeAt(1, act);
  }

  #writeAt<T>(wanted: number, act: () => T): T {
    if (this.#db.inTransaction) return act();
    // It is set when the file is opened, and nowhere else. A statement for each pragma costs as much as a small write.
    this.#synchronous ??= Number(this.pragma('synchronous'));
    const synchronous = this.#synchronous;
    if (synchronous === wanted) return this.write(act);
    this.exec(`PRAGMA synchronous = ${wanted}`);
    try {
      return this.write(act);
    } finally {
      this.exec(`PRAGMA synchronous = ${synchronous}`);
    }
  }

  /** Runs `act` on one snapshot of the file. */
  read<T>(act: () => T): T {
    if (this.#db.inTransaction) return act();
    try {
      return this.#savepoint.deferred(act) as T;
    } catch (error) {
      return this.#again(error, () => this.#savepoint.deferred(act) as T);
    }
  }

  /** Runs `act` inside the open transaction, in a savepoint: if it fails, only its own writes are undone. */
  savepoint<T>(act: () => T): T {
    return guard(this.#db.name, () => this.#savepoint(act) as T);
  }

  /** Like `write`, and overwrites freed bytes with zeros. This costs time, so only redactions do it. */
  writeAndWipe<T>(act: () => T): T {
    this.pragma('secure_delete = ON');
    try {
      return this.write(act);
    } finally {
      this.#setIfPossible('secure_delete = OFF');
    }
  }

  /**
   * Writes the whole file anew: pages keep bytes of rows that were moved elsewhere before they were erased. False where
   * others use the file all the time, or the disk is full; the file then stays as it is. The new file is first a
   * temporary one on the disk, as it can be larger than the memory.
   */
  rewriteFile(): boolean {
    try {
      this.pragma('temp_store = FILE');
      this.exec('VACUUM');
      return true;
    } catch (error) {
      if (!(error instanceof TapeError) || (error.code !== 'TAPE_IO' && error.code !== 'TAPE_LOCKED'))
        throw error;
      return false;
    } finally {
      this.#setIfPossible('temp_store = MEMORY');
    }
  }

  /** A setting that only costs time where it stays as it is: the act before it is done. */
  #setIfPossible(setting: string): void {
    try {
      this.pragma(setting);
    } catch (error) {
      if (!(error instanceof TapeError)) throw error;
    }
  }

  pragma(source: string): unknown {
    try {
      return this.#db.pragma(source, { simple: true });
    } catch (error) {
      return this.#again(error, () => this.#db.pragma(source, { simple: true }));
    }
  }

  exec(sql: string): void {
    try {
      this.#db.exec(sql);
    } catch (error) {
      this.#again(error, () => this.#db.exec(sql));
    }
  }

  /** Writes the WAL back into the database and truncates it; false when a reader or writer blocked it. */
  checkpoint(): boolean {
    const [row] = guard(this.#db.name, () => this.#db.pragma('wal_checkpoint(TRUNCATE)')) as {
      busy: number;
    }[];
    return row?.busy === 0;
  }

  /** Switches the journal mode, if it differs. */
  switchJournal(mode: 'wal' | 'delete'): void {
    if (this.pragma('journal_mode') === mode) return;
    if (this.pragma(`journal_mode = ${mode}`) !== mode)
      throw new TapeError(
        'TAPE_CANNOT_OPEN',
        `cannot open the store: SQLite did not switch its journal to ${mode}`,
      );
  }

  /** Returns a number that changes when another connection commits. Takes no lock. */
  dataVersion(): number {
    return Number(this.pragma('data_version'));
  }

  /**
   * Copies the database page by page while it is in use, by SQLite's own backup: a file copy would miss the
   * WAL.
   */
  async backup(file: string, onProgress?: OnProgress): Promise<void> {
    const progress = pagesTo(onProgress);
    // In memory or in exclusive mode no other connection can change the file during the copy.
    if (this.#db.memory || this.pragma('locking_mode') === 'exclusive') {
      await this.#db.backup(file, progress);
      return;
    }
    // Reads one snapshot through a connection of its own: otherwise the copy would restart with every commit.
    const source = new SqliteDb(this.#db.name, { readonly: true });
    try {
      source.#db.exec('BEGIN');
      source.#db.prepare('SELECT count(*) FROM sqlite_schema').get();
      await source.#db.backup(file, progress);
    } finally {
      source.close();
    }
  }

  close(): void {
    this.#db.close();
  }

  /**
   * Repeats an act that failed while another connection held a lock. Reads wait too: a process that creates or
   * recovers the file locks readers out.
   */
  #again<T>(error: unknown, act: () => T): T {
    const failed = typed(this.#db.name, error);
    if (this.#db.inTransaction || !isLocked(failed)) throw failed;
    try {
      return retryLocked(failed, () => guard(this.#db.name, act), Math.max(this.lockWaitMs, lockWaitMin));
    } catch (last) {
      if (!isLocked(last)) throw last;
      // Reads the leases without waiting: another wait for the lock would not end.
      const rows = <Row>(sql: string) => this.#db.prepare<[], Row>(sql).all();
      throw stillLocked(last, { file: this.#db.name, rows });
    }
  }

  /**
   * With a bare parameter SQLite plans the statement again for every new value, which costs up to ten times
   * the query. A plus makes the parameter an expression, which is planned once.
   */
  #prepare(sql: string): Database.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql.replaceAll(/[@?]/g, '+$&'));
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** Does an act with typed errors. */
function guard<T>(file: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw typed(file, error);
  }
}

/** Turns SQLite's errors into TapeErrors; others stay as they are. */
function typed(file: string, error: unknown): unknown {
  if (error instanceof TypeError && error.message === 'The database connection is not open')
    return new TapeError('TAPE_CLOSED', 'cannot use the store: it is closed', { cause: error });
  if (!(error instanceof Database.SqliteError)) return error;
  const { code, message } = error;
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'))
    return new TapeError('TAPE_LOCKED', 'cannot write: another process holds the write lock', {
      cause: error,
    });
  // All statements are in this package, so a missing table or column means that the file has lost it.
  const lost = code === 'SQLITE_ERROR' && /^no such (?:table|column)/.test(message);
  if (lost || code.startsWith('SQLITE_CORRUPT') || code.startsWith('SQLITE_NOTADB'))
    return new TapeError('TAPE_CORRUPT', `cannot read the database: ${message}`, { cause: error });
  if (/^SQLITE_(?:FULL|IOERR|READONLY|CANTOPEN|PERM)/.test(code))
    return new TapeError('TAPE_IO', `cannot use the database file: ${diskFull(file, code) ?? message}`, {
      cause: error,
    });
  return error;
}

/** SQLite needs 32 KiB of shared memory beside a database, and reports a disk without them as an I/O error. */
const roomMin = 64 * 1024;

function diskFull(file: string, code: string): string | undefined {
  const full = `no space is left on the disk of '${file}'`;
  if (code === 'SQLITE_FULL') return full;
  return code.startsWith('SQLITE_IOERR') && (roomAt(file) ?? roomMin) < roomMin ? full : undefined;
}

/** How many pages are copied before others have their turn. */
const pagesAtOnce = 100;

/** The options of a copy that reports how many pages it has. */
function pagesTo(onProgress: OnProgress | undefined): Database.BackupOptions {
  return {
    progress: ({ totalPages, remainingPages }) => {
      onProgress?.({ done: totalPages - remainingPages, total: totalPages });
      return pagesAtOnce;
    },
  };
}
