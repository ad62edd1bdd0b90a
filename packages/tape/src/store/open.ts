import { existsSync } from 'node:fs';
import { TapeError } from '../errors.ts';
import {
  assertFile,
  assertSqlite,
  cannotOpen,
  machineProbe,
  type Probe,
  prepareDirectory,
  prepareFile,
} from '../sqlite/place.ts';
import { pageSize, schemaVersion } from '../sqlite/schema.ts';
import { Db } from '../sqlite/sqlite.ts';
import { migrate, versionOf } from './migrate.ts';

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

/**
 * Opens a tape database, and creates it where there is none (M1).
 * @throws TAPE_CANNOT_OPEN, TAPE_SCHEMA_NEWER, TAPE_SCHEMA_OLDER when it is only to be read, TAPE_NOT_A_TAPE; an existing file that is not ours is not written.
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
  if (!inMemory && !readonly && existsSync(`${path}-wal`)) assertBeforeWriting(path);
  const db = new Db(path, { readonly: readonly && !alone });
  try {
    if (alone) for (const pragma of ['locking_mode = EXCLUSIVE', 'query_only = ON']) db.pragma(pragma);
    assertSqlite(path, probe.sqliteVersion(db.get<{ v: string }>('SELECT sqlite_version() AS v')?.v ?? '0'));
    // On one snapshot: another process may be making the tables between two looks.
    const version = db.read(() => versionOf(db, path));
    const synchronous = durability === 'full' ? 2 : 1;
    if (!readonly && !inMemory) {
      if (version === 'new') db.pragma(`page_size = ${pageSize}`);
      db.switchJournal(allowUnsafePlace ? 'delete' : 'wal');
    }
    // A second open of a WAL file gets synchronous=NORMAL from the library's build: set it each time, and look.
    db.pragma(`synchronous = ${synchronous}`);
    for (const pragma of pragmas) db.pragma(pragma);
    if (db.pragma('synchronous') !== synchronous)
      throw cannotOpen(path, 'SQLite did not take the synchronous setting');
    // Opening what is as it should be takes no lock.
    if (version === schemaVersion) return db;
    if (readonly) throw notReadable(path, version);
    migrate(db, path);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A connection that closes last writes a log that a crash left back into its file: one that cannot write asks first whose it is. */
function assertBeforeWriting(path: string): void {
  const db = new Db(path, { readonly: true });
  try {
    db.read(() => versionOf(db, path));
  } finally {
    db.close();
  }
}

/** Sizes; what keeps a connection safe is set as it opens. */
const pragmas = ['journal_size_limit = 16777216', 'wal_autocheckpoint = 2000', 'temp_store = MEMORY'];

function notReadable(path: string, version: number | 'new'): TapeError {
  if (version === 'new') return new TapeError('TAPE_NOT_A_TAPE', `cannot read '${path}': it holds no tapes`);
  return new TapeError(
    'TAPE_SCHEMA_OLDER',
    `cannot read '${path}': it is at schema ${version}, and this build reads ${schemaVersion}; opening it for writing brings it up to date`,
    { data: { found: version, known: schemaVersion } },
  );
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
    assertFile(path, probe);
    return;
  }
  const warning = prepareDirectory(path, { probe, allowUnsafe: allowUnsafePlace });
  if (warning !== undefined) onWarning(warning);
  prepareFile(path, probe);
}
