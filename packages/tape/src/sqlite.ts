import { closeSync, constants, fchmodSync, lstatSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { TapeError } from './errors.ts';
import { applicationId, pageSize, schema, schemaVersion } from './schema.ts';

/** A value that SQLite stores. */
export type SqlValue = string | number | null | Uint8Array;
type Params = Readonly<Record<string, SqlValue>>;

export interface OpenOptions {
  /** `full` (default): what is acknowledged survives power loss; `fast`: the last moments may not. */
  readonly durability?: 'full' | 'fast';
  readonly readonly?: boolean;
}

/** How long a writer waits for the write lock before it gives up, in milliseconds (M3). */
const lockDeadlineMs = 15_000;

/**
 * One connection. The only file that knows better-sqlite3: statements are prepared once per text, every
 * write is an immediate transaction with a jittered retry, and SQLite's failures come out as TapeErrors.
 */
export class Db {
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Database.Statement>();

  constructor(db: Database.Database) {
    this.#db = db;
  }

  get<Row>(sql: string, params: Params = {}): Row | undefined {
    return guard(() => this.#prepare(sql).get(params) as Row | undefined);
  }

  all<Row>(sql: string, params: Params = {}): Row[] {
    return guard(() => this.#prepare(sql).all(params) as Row[]);
  }

  /** Runs a statement and returns how many rows it changed. */
  run(sql: string, params: Params = {}): number {
    return guard(() => this.#prepare(sql).run(params).changes);
  }

  /** The rowid of the last insert on this connection. */
  insert(sql: string, params: Params): number {
    return guard(() => Number(this.#prepare(sql).run(params).lastInsertRowid));
  }

  /** Runs `act` in one immediate transaction: all of it or none. `act` does no I/O and awaits nothing. */
  write<T>(act: () => T): T {
    if (this.#db.inTransaction) return act();
    return retry(() => guard(() => this.#db.transaction(act).immediate()));
  }

  /** Runs `act` on one snapshot of the file. */
  read<T>(act: () => T): T {
    if (this.#db.inTransaction) return act();
    return retry(() => guard(() => this.#db.transaction(act).deferred()));
  }

  /** Runs `act` inside the transaction under way so that its failure undoes only what it did itself. */
  savepoint<T>(act: () => T): T {
    return guard(() => this.#db.transaction(act)());
  }

  pragma(source: string): unknown {
    return guard(() => this.#db.pragma(source, { simple: true }));
  }

  exec(sql: string): void {
    guard(() => this.#db.exec(sql));
  }

  close(): void {
    this.#db.close();
  }

  #prepare(sql: string): Database.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      if (!this.#db.open) throw new TapeError('TAPE_CLOSED', 'cannot use the store: it is closed');
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/**
 * Opens a tape database, and creates it where there is none (M1).
 * @throws TAPE_CANNOT_OPEN, TAPE_SCHEMA_NEWER, TAPE_NOT_A_TAPE; an existing file that is not ours is not written.
 */
export function openDatabase(path: string, { durability = 'full', readonly = false }: OpenOptions = {}): Db {
  const inMemory = path === ':memory:';
  if (!inMemory) prepareFile(path, readonly);
  let raw: Database.Database;
  try {
    raw = new Database(path, { timeout: 20, readonly: readonly && !inMemory, fileMustExist: !inMemory });
  } catch (cause) {
    throw cannotOpen(path, (cause as Error).message, cause);
  }
  const db = new Db(raw);
  try {
    const version = checkVersion(db, path);
    const synchronous = durability === 'full' ? 2 : 1;
    if (!readonly && !inMemory) {
      if (version === 0) db.pragma(`page_size = ${pageSize}`);
      retry(() => guard(() => switchToWal(raw)));
    }
    // A second open of a WAL file gets synchronous=NORMAL from the library's build: set it each time, and look.
    db.pragma(`synchronous = ${synchronous}`);
    for (const pragma of pragmas) db.pragma(pragma);
    if (db.pragma('synchronous') !== synchronous)
      throw cannotOpen(path, 'SQLite did not take the synchronous setting');
    if (!readonly) db.write(() => migrate(db, path));
    else if (version === 0)
      throw new TapeError('TAPE_NOT_A_TAPE', `cannot read '${path}': it holds no tapes`);
    return db;
  } catch (error) {
    raw.close();
    throw error;
  }
}

const pragmas = [
  'foreign_keys = ON',
  'trusted_schema = OFF',
  'cell_size_check = ON',
  'mmap_size = 0',
  'journal_size_limit = 16777216',
  'wal_autocheckpoint = 1000',
  'temp_store = MEMORY',
  ...(process.platform === 'darwin' ? ['fullfsync = ON', 'checkpoint_fullfsync = ON'] : []),
];

/** Creates the file with its mode before SQLite does, which would leave it readable to all (R13). */
function prepareFile(path: string, readonly: boolean): void {
  try {
    if (!readonly) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const fd = openSync(
        path,
        constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
        0o600,
      );
      fchmodSync(fd, 0o600);
      closeSync(fd);
      return;
    }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST')
      throw cannotOpen(path, (cause as Error).message, cause);
  }
  // An existing file is never opened here: closing a second descriptor would drop SQLite's locks on it.
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw cannotOpen(path, 'there is no such file');
  if (!stat.isFile()) throw cannotOpen(path, 'it is not a regular file');
  if (stat.nlink > 1) throw cannotOpen(path, 'it has more than one hard link');
}

/** The schema version of the file, 0 when it is new. Writes nothing. */
function checkVersion(db: Db, path: string): number {
  const version = Number(db.pragma('user_version'));
  const application = Number(db.pragma('application_id'));
  if (application === 0 && version === 0) {
    if (db.get('SELECT 1 FROM sqlite_schema LIMIT 1') === undefined) return 0;
    throw new TapeError('TAPE_NOT_A_TAPE', `cannot open '${path}': it is another program's database`);
  }
  if (application !== applicationId)
    throw new TapeError('TAPE_NOT_A_TAPE', `cannot open '${path}': it is another program's database`);
  if (version > schemaVersion)
    throw new TapeError(
      'TAPE_SCHEMA_NEWER',
      `cannot open '${path}': it is at schema ${version}, and this build knows ${schemaVersion}`,
      { data: { found: version, known: schemaVersion } },
    );
  return version;
}

function switchToWal(db: Database.Database): void {
  if (db.pragma('journal_mode', { simple: true }) === 'wal') return;
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal')
    throw new TapeError('TAPE_CANNOT_OPEN', 'cannot open the store: SQLite did not switch to WAL');
}

/** Runs inside the write lock: of all who find the file new, one creates the tables. */
function migrate(db: Db, path: string): void {
  if (checkVersion(db, path) === schemaVersion) return;
  db.exec(schema);
  db.pragma(`application_id = ${applicationId}`);
  db.pragma(`user_version = ${schemaVersion}`);
}

/**
 * SQLite's own busy handler backs off to 100 ms and starves a second tight writer; short waits with jitter
 * share the lock evenly.
 */
function retry<T>(act: () => T): T {
  const deadline = performance.now() + lockDeadlineMs;
  for (;;) {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_LOCKED' || performance.now() > deadline)
        throw error;
      Atomics.wait(waiting, 0, 0, Math.random() * 2);
    }
  }
}

const waiting = new Int32Array(new SharedArrayBuffer(4));

/** Turns SQLite's errors into ours; all others pass. */
function guard<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error;
    const { code, message } = error;
    if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'))
      throw new TapeError('TAPE_LOCKED', 'cannot write: another process holds the write lock', {
        cause: error,
      });
    if (code.startsWith('SQLITE_CORRUPT') || code.startsWith('SQLITE_NOTADB'))
      throw new TapeError('TAPE_CORRUPT', `cannot read the database: ${message}`, { cause: error });
    if (/^SQLITE_(?:FULL|IOERR|READONLY|CANTOPEN|PERM)/.test(code))
      throw new TapeError('TAPE_IO', `cannot use the database file: ${message}`, { cause: error });
    throw error;
  }
}

function cannotOpen(path: string, why: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_CANNOT_OPEN', `cannot open '${path}': ${why}`, { cause });
}
