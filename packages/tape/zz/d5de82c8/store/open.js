import { existsSync } from 'node:fs';
import { TapeError } from '../errors.js';
import {
  assertFile,
  assertSqlite,
  assertWritable,
  cannotOpen,
  isEmpty,
  machineProbe,
             
  prepareDirectory,
  prepareFile,
  whyNotInPlace,
} from '../sqlite/place.js';
import { privateCopy } from '../sqlite/private-copy.js';
import { pageSize, schemaVersion } from '../sqlite/schema.js';
import { Db, pragmas } from '../sqlite/sqlite.js';
import { migrate } from './migrate.js';
import { versionOf } from './version.js';

                              
                                                                                                        
                                                    
                                          
                                                                                                       
                                         
                                                                                                              
                                                  
                                                          
                                       
     
                                                                                                            
     
                                                            
                                         
                                              
 

/**
 * Opens a tape database; creates it if it does not exist. A file that is no tape database is never written.
 * `beforeCreating` is called when the file does not exist, before anything is written. If it throws, no file exists afterwards.
 * @throws TAPE_CANNOT_OPEN, TAPE_UNSAFE_PLACE, TAPE_NOT_A_TAPE, TAPE_SCHEMA_NEWER; TAPE_SCHEMA_OLDER when
 * opened for reading only
 */
export function openDatabase(path        , options              = {}, beforeCreating             )     {
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
function openCopy(path        , options             )     {
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
  path        ,
  options             ,
  { alone, beforeCreating }                                                                                 ,
)     {
  const { durability = 'full', readonly = false, allowUnsafePlace = false } = options;
  const inMemory = path === ':memory:';
  const probe = { ...machineProbe, ...options.probe };
  if (!inMemory) typed(path, () => preparePlace(path, { ...options, probe, beforeCreating }));
  if (!inMemory && !readonly && existsSync(`${path}-wal`)) assertBeforeWriting(path);
  const db = new Db(path, { readonly: readonly && !alone });
  try {
    if (alone) for (const pragma of ['locking_mode = EXCLUSIVE', 'query_only = ON']) db.pragma(pragma);
    assertSqlite(path, probe.sqliteVersion(db.get               ('SELECT sqlite_version() AS v')?.v ?? '0'));
    // One snapshot: another process may be creating the tables between two reads.
    const version = db.read(() => versionOf(db, path));
    const synchronous = durability === 'full' ? 2 : 1;
    if (!readonly && !inMemory) {
      if (version === 'new') db.pragma(`page_size = ${pageSize}`);
      db.switchJournal(allowUnsafePlace ? 'delete' : 'wal');
    }
    // better-sqlite3 is built to open an existing WAL file with synchronous=NORMAL: set it on each open, and
    // check.
    db.exec(pragmas([`synchronous = ${synchronous}`, ...settings]));
    if (db.pragma('synchronous') !== synchronous)
      throw cannotOpen(path, 'SQLite did not accept the synchronous setting');
    // A database at the current schema opens without a lock.
    if (version === schemaVersion) return db;
    if (readonly) throw notReadable(path, version);
    migrate(db, path, options.homeId);
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
function assertBeforeWriting(path        )       {
  const db = new Db(path, { readonly: true });
  try {
    db.read(() => versionOf(db, path));
  } finally {
    db.close();
  }
}

/** Settings for size and speed; those for safety are in `Db`. */
const settings = ['journal_size_limit = 16777216', 'wal_autocheckpoint = 2000', 'temp_store = MEMORY'];

function notReadable(path        , version                )            {
  if (version === 'new') return new TapeError('TAPE_NOT_A_TAPE', `cannot read '${path}': it has no tapes`);
  return new TapeError(
    'TAPE_SCHEMA_OLDER',
    `cannot read '${path}': it has schema ${version}, and this build reads ${schemaVersion}; open it for writing to upgrade it`,
    { data: { found: version, known: schemaVersion } },
  );
}

/** Turns file system errors into TapeErrors. */
function typed   (path        , act         )    {
  try {
    return act();
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    throw cannotOpen(path, (cause         ).message, cause);
  }
}

function preparePlace(
  path        ,
  {
    probe,
    beforeCreating,
    readonly,
    allowUnsafePlace = false,
    onWarning = process.emitWarning,
  }                                                                                            ,
)       {
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
