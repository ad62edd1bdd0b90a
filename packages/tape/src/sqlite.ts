import Database from 'better-sqlite3';
import { TapeError } from './errors.ts';
import {
  cannotOpen,
  checkFile,
  checkSqlite,
  machineProbe,
  type Probe,
  prepareDirectory,
  prepareFile,
} from './place.ts';
import { applicationId, pageSize, schema, schemaVersion } from './schema.ts';

/** A value that SQLite stores. */
export type SqlValue = string | number | null | Uint8Array;
type Params = Readonly<Record<string, SqlValue>>;

export interface OpenOptions {
  /** `full` (default): what is acknowledged survives power loss; `fast`: the last moments may not. */
  readonly durability?: 'full' | 'fast' | undefined;
  readonly readonly?: boolean | undefined;
  /** Open on a file system where SQLite's locks may not hold (R18); the database then does without shared memory. */
  readonly allowUnsafePlace?: boolean | undefined;
  /** Told what opening changed beside the database: that it closed the directory to others. By default a warning of the process. */
  readonly onWarning?: ((text: string) => void) | undefined;
  /** What opening asks the machine. */
  readonly probe?: Partial<Probe> | undefined;
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

  /** Takes better-sqlite3's handle; typed so that the package's declarations do not need its types. */
  constructor(db: unknown) {
    this.#db = db as Database.Database;
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
    return guard(() => this.#db.transaction(act).immediate());
  }

  /** Runs `act` in one immediate transaction: all of it or none. `act` does no I/O and awaits nothing. */
  write<T>(act: () => T): T {
    if (this.#db.inTransaction) return act();
    return retry(() => guard(() => this.#db.transaction(act).immediate()));
  }

  /**
   * As `write`, and on disk when it returns, where durability is `fast` too: lines go to the graph file next, and a
   * power cut must not leave one there that the database lost.
   */
  writeThrough<T>(act: () => T): T {
    if (this.#db.inTransaction) return act();
    const synchronous = this.pragma('synchronous');
    if (synchronous === 2) return this.write(act);
    this.pragma('synchronous = FULL');
    try {
      return this.write(act);
    } finally {
      this.pragma(`synchronous = ${synchronous}`);
    }
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

  /** Copies the database page by page while it is used, by SQLite's own backup: a file copy would miss the WAL. */
  async backup(file: string): Promise<void> {
    await this.#db.backup(file);
  }

  close(): void {
    this.#db.close();
  }

  /** A read waits too: while another process makes the file new or recovers it, that one has it to itself. */
  #try<T>(act: () => T): T {
    return this.#db.inTransaction ? guard(act) : retry(() => guard(act));
  }

  /**
   * A bare parameter lets the planner look at its value, and then every new value plans the statement anew, which
   * costs up to ten times the query. Behind a plus it is an expression, planned once.
   */
  #prepare(sql: string): Database.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      if (!this.#db.open) throw new TapeError('TAPE_CLOSED', 'cannot use the store: it is closed');
      statement = this.#db.prepare(sql.replaceAll('@', '+@'));
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/**
 * Opens a tape database, and creates it where there is none (M1).
 * @throws TAPE_CANNOT_OPEN, TAPE_SCHEMA_NEWER, TAPE_NOT_A_TAPE; an existing file that is not ours is not written.
 */
export function openDatabase(path: string, options: OpenOptions = {}): Db {
  try {
    return openConnection(path, options, false);
  } catch (error) {
    if (options.readonly !== true || !(error instanceof TapeError) || error.code !== 'TAPE_IO') throw error;
    try {
      return openConnection(path, options, true);
    } catch {
      throw error;
    }
  }
}

/**
 * Alone, a reader needs no shared memory, for which a full disk has no room (R8); while others have the file open
 * there is some, and being alone fails. It takes a handle that could write for the lock, and lets it write nothing.
 */
function openConnection(path: string, options: OpenOptions, alone: boolean): Db {
  const { durability = 'full', readonly = false, allowUnsafePlace = false } = options;
  const inMemory = path === ':memory:';
  const probe = { ...machineProbe, ...options.probe };
  if (!inMemory) typed(path, () => preparePlace(path, probe, options));
  let raw: Database.Database;
  try {
    raw = new Database(path, {
      timeout: 20,
      readonly: readonly && !inMemory && !alone,
      fileMustExist: !inMemory,
    });
  } catch (cause) {
    throw cannotOpen(path, (cause as Error).message, cause);
  }
  const db = new Db(raw);
  try {
    if (alone) for (const pragma of ['locking_mode = EXCLUSIVE', 'query_only = ON']) db.pragma(pragma);
    checkSqlite(path, probe.sqliteVersion(db.get<{ v: string }>('SELECT sqlite_version() AS v')?.v ?? '0'));
    // On one snapshot: another process may be making the tables between two looks.
    const version = db.read(() => checkVersion(db, path));
    const synchronous = durability === 'full' ? 2 : 1;
    if (!readonly && !inMemory) {
      if (version === 0) db.pragma(`page_size = ${pageSize}`);
      retry(() => guard(() => switchJournal(raw, allowUnsafePlace ? 'delete' : 'wal')));
    }
    // A second open of a WAL file gets synchronous=NORMAL from the library's build: set it each time, and look.
    db.pragma(`synchronous = ${synchronous}`);
    for (const pragma of pragmas) db.pragma(pragma);
    if (db.pragma('synchronous') !== synchronous)
      throw cannotOpen(path, 'SQLite did not take the synchronous setting');
    // Opening what is as it should be takes no lock.
    if (version === schemaVersion) return db;
    if (readonly) throw new TapeError('TAPE_NOT_A_TAPE', `cannot read '${path}': it holds no tapes`);
    db.write(() => migrate(db, path));
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

/** What the file system refuses comes out as an error of ours, as what SQLite refuses does. */
function typed(path: string, act: () => void): void {
  try {
    act();
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    throw cannotOpen(path, (cause as Error).message, cause);
  }
}

function preparePlace(
  path: string,
  probe: Probe,
  { readonly, allowUnsafePlace = false, onWarning = process.emitWarning }: OpenOptions,
): void {
  if (readonly === true) {
    checkFile(path, probe);
    return;
  }
  const warning = prepareDirectory(path, { probe, allowUnsafe: allowUnsafePlace });
  if (warning !== undefined) onWarning(warning);
  prepareFile(path, probe);
}

/** SQLite's busy handler is not used for this switch, so the caller tries again. */
function switchJournal(db: Database.Database, mode: 'wal' | 'delete'): void {
  if (db.pragma('journal_mode', { simple: true }) === mode) return;
  if (db.pragma(`journal_mode = ${mode}`, { simple: true }) !== mode)
    throw new TapeError(
      'TAPE_CANNOT_OPEN',
      `cannot open the store: SQLite did not switch its journal to ${mode}`,
    );
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
