import { existsSync, statSync } from 'node:fs';
import { TapeError } from '../errors.ts';
import type { OnProgress } from '../progress.ts';
import { pause } from '../sqlite/lock-wait.ts';
import {
  assertFile,
  assertSqlite,
  assertWritable,
  cannotOpen,
  isEmpty,
  machineProbe,
  type Probe,
  prepareDirectory,
  prepareFile,
  whyNotInPlace,
} from '../sqlite/place.ts';
import { privateCopy } from '../sqlite/private-copy.ts';
import { pageSize, schemaVersion } from '../sqlite/schema.ts';
import { pragmas, SqliteDb } from '../sqlite/sqlite.ts';
import { migrate } from './migrate.ts';
import { versionOf } from './version.ts';

export interface OpenOptions {
  /** `full` (default): commits survive a power loss. `fast`: a power loss can lose the last moments. */
  readonly durability?: 'full' | 'fast' | undefined;
  readonly readonly?: boolean | undefined;
  /** False, with `readonly`: read a private copy, so that SQLite makes no file beside the database. */
  readonly inPlace?: boolean | undefined;
  /** Open on a file system where SQLite's locks are not reliable; the database then uses no shared memory. */
  readonly allowUnsafePlace?: boolean | undefined;
  /** The id that a new home gets. Default: a new ULID. */
  readonly homeId?: string | undefined;
  /**
   * Called when opening removed the access of other users to the directory. Default: `process.emitWarning`.
   */
  readonly onWarning?: ((text: string) => void) | undefined;
  /** Called while a file of an older schema is upgraded: how many of its sessions are. */
  readonly onUpgrade?: OnProgress | undefined;
  /** Replaces queries of the machine. */
  readonly probe?: Partial<Probe> | undefined;
}

/**
 * Opens a tape database; creates it if it does not exist. A file that is no tape database is never written.
 * `beforeCreating` is called when the file does not exist, before anything is written. If it throws, no file exists afterwards.
 * @throws TAPE_CANNOT_OPEN, TAPE_UNSAFE_PLACE, TAPE_NOT_A_TAPE, TAPE_SCHEMA_NEWER; TAPE_SCHEMA_OLDER when
 * opened for reading only
 */
export function openDatabase(path: string, options: OpenOptions = {}, beforeCreating?: () => void): SqliteDb {
  if (options.readonly === true && path !== ':memory:') {
    const probe = { ...machineProbe, ...options.probe };
    typed(path, () => assertFile(path, { ...probe, uid: () => undefined }));
    if (options.inPlace === false || typed(path, () => whyNotInPlace(path, probe)) !== undefined)
      return openCopy(path, options);
  }
  try {
    return openConnection(path, options, { alone: false, beforeCreating });
  } catch (error) {
    if (options.readonly !== true || !(error instanceof TapeError) || error.code !== 'TAPE_IO') throw error;
    try {
      return openConnection(path, options, { alone: true });
    } catch {
      throw error;
    }
  }
}

/**
 * Reads a database that cannot be read in place from a copy, whose files lose their names once they are open: they are
 * gone when the process ends, however it ends.
 */
function openCopy(path: string, options: OpenOptions): SqliteDb {
  const copy = typed(path, () => privateCopy(path));
  try {
    const db = openConnection(copy.path, { ...options, probe: {} }, { alone: true });
    db.isCopy = true;
    return db;
  } catch (error) {
    if (error instanceof TapeError)
      throw new TapeError(error.code, error.message.replaceAll(copy.path, path), {
        data: error.data,
        cause: error.cause,
      });
    throw error;
  } finally {
    copy.remove();
  }
}

/**
 * Opens a connection. A reader of a WAL file needs shared memory, which a full disk has no room for; `alone`
 * reads without it, in exclusive mode, and fails while other connections are open. It opens the file for
 * writing, to lock it, and sets `query_only`.
 */
function openConnection(
  path: string,
  options: OpenOptions,
  { alone, beforeCreating }: { readonly alone: boolean; readonly beforeCreating?: (() => void) | undefined },
): SqliteDb {
  const { durability = 'full', readonly = false, allowUnsafePlace = false } = options;
  const inMemory = path === ':memory:';
  const probe = { ...machineProbe, ...options.probe };
  if (!inMemory) typed(path, () => preparePlace(path, { ...options, probe, beforeCreating }));
  if (!inMemory && !readonly && existsSync(`${path}-wal`)) assertBeforeWriting(path);
  const db = new SqliteDb(path, { readonly: readonly && !alone });
  try {
    if (alone) for (const pragma of ['locking_mode = EXCLUSIVE', 'query_only = ON']) db.pragma(pragma);
    assertSqlite(path, probe.sqliteVersion(db.get<{ v: string }>('SELECT sqlite_version() AS v')?.v ?? '0'));
    const version = readonly && !alone && !inMemory ? versionOnceMade(db, path) : versionOf(db, path);
    const synchronous = durability === 'full' ? 2 : 1;
    if (!readonly && !inMemory) {
      if (version === 'new') db.pragma(`page_size = ${pageSize}`);
      db.switchJournal(allowUnsafePlace ? 'delete' : 'wal');
    }
    if (readonly) db.exec(pragmas(readerSettings));
    else {
      // better-sqlite3 is built to open an existing WAL file with synchronous=NORMAL: set it on each open, and
      // check.
      db.exec(pragmas([`synchronous = ${synchronous}`, ...settings]));
      if (db.pragma('synchronous') !== synchronous)
        throw cannotOpen(path, 'SQLite did not accept the synchronous setting');
    }
    // A database at the current schema opens without a lock.
    if (version === schemaVersion) return db;
    if (readonly) throw notReadable(path, version);
    migrate(db, path, options);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Checks the file read-only first, because a writable connection writes a leftover WAL into the file when it
 * closes.
 */
function assertBeforeWriting(path: string): void {
  const db = new SqliteDb(path, { readonly: true });
  try {
    versionOf(db, path);
  } finally {
    db.close();
  }
}

/** How long after it was written last a file without tables may be one that another process is making, in milliseconds. */
const makingMs = 1_000;

/** As `versionOf`, of a file that another process may be making: there is a moment between the file and its tables. */
function versionOnceMade(db: SqliteDb, path: string): number | 'new' {
  for (let waitedMs = 0; ; waitedMs += 20) {
    const version = versionOf(db, path);
    if (version !== 'new' || waitedMs >= makingMs || !isYoung(path)) return version;
    pause(20);
  }
}

function isYoung(path: string): boolean {
  const { mtimeMs = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  return Date.now() - mtimeMs < makingMs;
}

/** Settings for size and speed; those for safety are in `SqliteDb`. */
const readerSettings = ['temp_store = MEMORY'];
const settings = [...readerSettings, 'journal_size_limit = 16777216', 'wal_autocheckpoint = 2000'];

function notReadable(path: string, version: number | 'new'): TapeError {
  if (version === 'new') return new TapeError('TAPE_NOT_A_TAPE', `cannot read '${path}': it has no tapes`);
  return new TapeError(
    'TAPE_SCHEMA_OLDER',
    `cannot read '${path}': it has schema ${version}, and this build reads ${schemaVersion}; open it for writing to upgrade it`,
    { data: { found: version, known: schemaVersion } },
  );
}

/** Turns file system errors into TapeErrors. */
function typed<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    throw cannotOpen(path, (cause as Error).message, cause);
  }
}

function preparePlace(
  path: string,
  {
    probe,
    beforeCreating,
    readonly,
    allowUnsafePlace = false,
    onWarning = process.emitWarning,
  }: OpenOptions & { readonly probe: Probe; readonly beforeCreating: (() => void) | undefined },
): void {
  if (readonly === true) {
    assertFile(path, probe);
    return;
  }
  const warning = prepareDirectory(path, { probe, allowUnsafe: allowUnsafePlace });
  if (warning !== undefined) onWarning(warning);
  assertWritable(path);
  try {
    if (isEmpty(path)) beforeCreating?.();
  } catch (error) {
    // Unless another process has begun the database meanwhile.
    if (isEmpty(path)) throw error;
  }
  prepareFile(path, probe);
}
