import { readFileSync, statSync } from 'node:fs';
import { openJournal } from '@tapedeck/graph/journal';
import {
  type Elsewhere,
  type HomeStore,
  openTapeStore,
  SqliteTapeStore,
  type StoreOptions,
  TapeError,
} from '@tapedeck/tape';
import { secretsIn } from '@tapedeck/tape/internal';
import { UsageError } from './errors/kinds.ts';
import type { Io } from './io.ts';
import {
  assertOwn,
  claim,
  foreignHome,
  isForeign,
  recordOf,
  remember,
  rememberLog,
  trustIn,
  trustsAll,
} from './origin.ts';
import { openProgressLine, type ProgressLine } from './progress-line.ts';

/** A home whose tapes are in a file of its directory. */
export interface FileHome {
  readonly dir: string;
  /** How people name it: the directory, or the address without what opens it. */
  readonly name: string;
  /** Whether it is `~/.tape`, because no other home was named or found. */
  readonly isFallback: boolean;
  /** Whether it was found in or above the working directory, so that no one named it. */
  readonly isFound: boolean;
  /** The realm of its sessions. Default: the one that the home records, else `tape`. */
  readonly base?: string;
  readonly db: string;
  readonly graph: string;
  readonly server?: undefined;
}

/** Options of a home that is opened for writing. */
export type WritingOptions = Pick<StoreOptions, 'durability' | 'keepInboxes' | 'redact'> & {
  /** Whether the `config.yaml` of a new home is this user's. */
  readonly hasOwnConfig?: boolean;
  /** Shows no progress. */
  readonly quiet?: boolean | undefined;
};

export type WritingIo = Pick<Io, 'env' | 'err' | 'statusIsTerminal' | 'interrupted'>;

/**
 * Opens a home in a file for writing, and creates it if it does not exist. Records a home that is used for the first
 * time, with what it contains now: of that, nothing counts that can make something run.
 * @throws ConfigError CLI_FOREIGN_HOME
 */
export function openFileForWriting(home: FileHome, io: WritingIo, options: WritingOptions): HomeStore {
  if (options.durability === 'fast') io.err('Durability fast: a power cut may lose the latest entries\n');
  const open = (trust: boolean | Elsewhere) => opened(home, io, { ...options, trust });
  for (;;) {
    assertOwn(home, io);
    if (trustsAll(io)) return open(true);
    if (doesExist(home.db)) return openThere(home, io, open);
    const store = create(home, io, { ...options, open });
    if (store !== undefined) return store;
  }
}

type Open = (trust: boolean | Elsewhere) => HomeStore;

function opened(
  home: FileHome,
  io: WritingIo,
  {
    durability,
    keepInboxes = false,
    redact,
    quiet,
    trust,
  }: WritingOptions & { readonly trust: boolean | Elsewhere },
): HomeStore {
  const { env, err } = io;
  const line = openProgressLine(io, { quiet });
  return ending(line, () =>
    openTapeStore(home.db, {
      trust,
      durability,
      keepInboxes,
      journal: openJournal(home.graph),
      allowUnsafePlace: env.TAPE_ALLOW_UNSAFE_FS === '1',
      onWarning: (text) => err(`${text}\n`),
      onUpgrade: line.part('Upgrading sessions'),
      secrets: secretsIn(env),
      ...(redact !== undefined && { redact }),
      ...(home.base !== undefined && { base: home.base }),
    }),
  );
}

function openThere(home: FileHome, io: WritingIo, open: Open): HomeStore {
  const record = recordOf(home, io);
  const store = open(record?.elsewhere ?? false);
  rememberLog(home, io);
  if (store.homeId === record?.home) return store;
  const known = record === undefined ? store : replaced(store, home, open);
  remember(home, known, { consent: 'named', hasOwnConfig: false, env: io.env });
  return known;
}

/** Creates a home; undefined when another process has done so meanwhile, and has begun to use it. */
function create(
  home: FileHome,
  io: WritingIo,
  { hasOwnConfig = true, open }: WritingOptions & { readonly open: Open },
): HomeStore | undefined {
  using _claim = claim(home, io);
  const store = open(false);
  if (store.elsewhere.entries === 0) {
    remember(home, store, { consent: 'created', hasOwnConfig, env: io.env });
    return store;
  }
  store.close();
  return undefined;
}

function ending<T>({ end }: ProgressLine, act: () => T): T {
  try {
    return act();
  } finally {
    end();
  }
}

/**
 * Opens a home again whose file has another content than the recorded one.
 * @throws ConfigError CLI_FOREIGN_HOME
 */
function replaced(store: HomeStore, home: FileHome, open: Open): HomeStore {
  store.close();
  if (home.isFound) throw foreignHome(home);
  return open(false);
}

/** Opens a home in a file for reading, which must exist. Writes nothing. */
export function openFileForReading(home: FileHome, io: Pick<Io, 'env'>): HomeStore {
  return openTapeStore(home.db, {
    readonly: true,
    trust: trustIn(home, io),
    // A foreign home stays as it is, without the files that SQLite makes beside a database.
    ...(isForeign(home, io) && { inPlace: false }),
    ...(home.base !== undefined && { base: home.base }),
  });
}

/**
 * The store of a home that is a file, for what is done to that alone.
 * @throws UsageError for another one, which says what to do instead
 */
export function storeInFile(
  store: HomeStore,
  {
    home: { name },
    act,
    instead,
  }: { readonly home: Pick<FileHome, 'name'>; readonly act: string; readonly instead: string },
): SqliteTapeStore {
  if (store instanceof SqliteTapeStore) return store;
  throw new UsageError(`cannot ${act} '${name}': its tapes are on a server`, {
    data: { home: name },
    hint: instead,
  });
}

/**
 * Whether a file exists. A directory that cannot be entered is an error, not an absence.
 * @throws TAPE_CANNOT_OPEN
 */
export function doesExist(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOTDIR' || code === 'ELOOP') return false;
    const why = code === 'EACCES' ? 'permission denied' : message;
    throw new TapeError('TAPE_CANNOT_OPEN', `cannot read '${file}': ${why}`, { data: { file }, cause });
  }
}

/**
 * Whether a file has a database with tables, or had: a process that is killed while it makes a home leaves a file without them, and
 * nothing else.
 * @throws TAPE_CANNOT_OPEN
 */
export function isMade({ db, graph }: Pick<FileHome, 'db' | 'graph'>): boolean {
  if (!doesExist(db)) return false;
  return !hasNoTables(db) || sizeOf(`${db}-wal`) > walHeaderBytes || sizeOf(graph) > 0;
}

/** A database with a table has more than one page, or has it in its WAL. */
const pageBytes = 4096;
const walHeaderBytes = 32;

/**
 * Whether a file is empty, or is a database without tables that is of no program yet, as SQLite makes it
 * (https://www.sqlite.org/fileformat.html).
 */
function hasNoTables(file: string): boolean {
  const size = sizeOf(file);
  if (size !== pageBytes) return size === 0;
  try {
    const page = readFileSync(file);
    const [application, cells] = [page.readUInt32BE(68), page.readUInt16BE(103)];
    return page.toString('latin1', 0, 16) === 'SQLite format 3\0' && application === 0 && cells === 0;
  } catch {
    // Why it cannot be read is said where it is opened.
    return false;
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Whether a home in a file has a database. A directory with the graph file of one that is gone is not empty.
 * @throws TAPE_CORRUPT, TAPE_CANNOT_OPEN
 */
export function hasTapesInFile({ db, dir, graph }: FileHome): boolean {
  if (isMade({ db, graph })) return true;
  if (doesExist(db)) return false;
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isDirectory())
    throw new TapeError('TAPE_CANNOT_OPEN', `cannot open '${dir}': it is not a directory`, {
      data: { file: dir },
    });
  const records = statSync(graph, { throwIfNoEntry: false });
  if (records?.isFile() === true && records.size > 0)
    throw new TapeError('TAPE_CORRUPT', `cannot read '${db}': it is missing, and its graph file is there`, {
      data: { file: db },
    });
  return false;
}
