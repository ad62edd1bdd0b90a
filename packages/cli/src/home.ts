import { existsSync, statSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openJournal } from '@tapedeck/graph/journal';
import {
  type Elsewhere,
  openTapeStore,
  type SqliteTapeStore,
  type StoreOptions,
  TapeError,
} from '@tapedeck/tape';
import { makeDirectories, secretsIn } from '@tapedeck/tape/internal';
import { isUlid } from '@tapedeck/tape/store';
import { NotFoundError, UsageError } from './errors/kinds.ts';
import { shellWord } from './escape.ts';
import type { Io } from './io.ts';
import {
  assertOwn,
  claim,
  foreignHome,
  isForeign,
  isSame,
  recordOf,
  remember,
  rememberLog,
  trustIn,
  trustsAll,
} from './origin.ts';
import { openProgressLine, type ProgressLine } from './progress-line.ts';

/** A tape home: a directory with `tape.db` and `session_graph.jsonl`. */
export interface Home {
  readonly dir: string;
  readonly db: string;
  readonly graph: string;
  /** Whether it is `~/.tape`, because no other home was named or found. */
  readonly isFallback: boolean;
  /** Whether it was found in or above the working directory, so that no one named it. */
  readonly isFound: boolean;
  /** The realm of its sessions. Default: the one that the home records, else `tape`. */
  readonly base?: string;
}

/**
 * A text whose commands name the home that the user named: without it, they would look at another one. A text that names a
 * home stays as it is.
 */
export function inHome(
  text: string,
  { home, isVerb }: { readonly home: string | undefined; readonly isVerb: (word: string) => boolean },
): string {
  if (home === undefined || text.includes('--home')) return text;
  return text.replace(/\btape ([a-z]+)\b(?! --help)/g, (command, word) =>
    isVerb(word) ? `${command} --home ${shellWord(home)}` : command,
  );
}

/** `--home`, else `TAPE_HOME`, else the nearest `.tape` upward, else `~/.tape`. */
export function findHome(given: string | undefined, { env, cwd }: Pick<Io, 'env' | 'cwd'>): Home {
  // An unset variable in `--home "$X"` must not turn the working directory into a home.
  if (given === '') throw new UsageError('cannot use --home: it is empty');
  const named = given ?? nonEmpty(env.TAPE_HOME);
  if (named !== undefined) return homeAt(named, cwd);
  const own = join(nonEmpty(env.HOME) ?? homedir(), '.tape');
  const found = nearest(cwd);
  if (found === undefined) return { ...homeAt(own, cwd), isFallback: true };
  return { ...homeAt(found, cwd), isFound: !isSame(found, own) };
}

export function homeAt(dir: string, cwd: string): Home {
  const at = resolve(cwd, dir);
  return {
    dir: at,
    db: join(at, 'tape.db'),
    graph: join(at, 'session_graph.jsonl'),
    isFallback: false,
    isFound: false,
  };
}

function nearest(from: string): string | undefined {
  for (let at = from; ; at = dirname(at)) {
    const candidate = join(at, '.tape');
    if (statSync(candidate, { throwIfNoEntry: false })?.isDirectory() === true) return candidate;
    if (dirname(at) === at) return undefined;
  }
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text;
}

/** Options of a home that is opened for writing. */
type WritingOptions = Pick<StoreOptions, 'durability' | 'keepInboxes' | 'redact'> & {
  /** Whether the `config.yaml` of a new home is this user's. */
  readonly hasOwnConfig?: boolean;
  /** Shows no progress. */
  readonly quiet?: boolean | undefined;
};

type WritingIo = Pick<Io, 'env' | 'err' | 'statusIsTerminal'>;

/**
 * Opens a home for writing, and creates it if it does not exist. Records a home that is used for the first time, with
 * what it contains now: of that, nothing counts that can make something run.
 * @throws ConfigError CLI_FOREIGN_HOME
 */
export function openForWriting(home: Home, io: WritingIo, options: WritingOptions = {}): SqliteTapeStore {
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

type Open = (trust: boolean | Elsewhere) => SqliteTapeStore;

function opened(
  home: Home,
  io: WritingIo,
  {
    durability,
    keepInboxes = false,
    redact,
    quiet,
    trust,
  }: WritingOptions & { readonly trust: boolean | Elsewhere },
): SqliteTapeStore {
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

function openThere(home: Home, io: WritingIo, open: Open): SqliteTapeStore {
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
  home: Home,
  io: WritingIo,
  { hasOwnConfig = true, open }: WritingOptions & { readonly open: Open },
): SqliteTapeStore | undefined {
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
function replaced(store: SqliteTapeStore, home: Home, open: Open): SqliteTapeStore {
  store.close();
  if (home.isFound) throw foreignHome(home);
  return open(false);
}

/**
 * Opens a home for reading. Writes nothing, not even the repairs that a crash left to do.
 * @throws NotFoundError when the home does not exist
 */
export function openForReading(home: Home, io: Pick<Io, 'env'>): SqliteTapeStore {
  return openTapeStore(getHome(home).db, {
    readonly: true,
    trust: trustIn(home, io),
    // A foreign home stays as it is, without the files that SQLite makes beside a database.
    ...(isForeign(home, io) && { inPlace: false }),
    ...(home.base !== undefined && { base: home.base }),
  });
}

/**
 * Makes the directory of a home, unless it is there.
 * @throws TAPE_CANNOT_OPEN
 */
export function makeHome({ dir }: Pick<Home, 'dir'>): void {
  try {
    makeDirectories(dir, 0o700);
  } catch (cause) {
    throw new TapeError('TAPE_CANNOT_OPEN', `cannot make the home '${dir}': ${(cause as Error).message}`, {
      data: { dir },
      cause,
    });
  }
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

/** The bytes of a home from which an act on all of it saves memory: less makes too little garbage to matter. */
const largeBytes = 2_000_000;

/**
 * Whether an act on all of a home has to save memory. In a small one that would take a tenth of its time: under other
 * flags V8 compiles again what the build has compiled.
 */
export function isLarge({ db }: Pick<Home, 'db'>): boolean {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return size(db) + size(`${db}-wal`) > largeBytes;
}

/**
 * Whether a home has a database. A directory with the graph file of one that is gone is not empty.
 * @throws TAPE_CORRUPT, TAPE_CANNOT_OPEN
 */
export function hasTapes({ db, dir, graph }: Home): boolean {
  if (doesExist(db)) return true;
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

/**
 * Refuses a home that was named and has no directory: it is more often mistyped than empty.
 * @throws NotFoundError
 */
export function assertThere(home: Home): void {
  if (!home.isFallback && !home.isFound && !doesExist(home.dir))
    throw new NotFoundError(`cannot read the tapes of '${home.dir}': there is no such directory`, {
      home: home.dir,
      missing: true,
    });
}

/**
 * Whether a home that is there has a database.
 * @throws what `assertThere` and `hasTapes` throw
 */
export function hasTapesToRead(home: Home): boolean {
  assertThere(home);
  return hasTapes(home);
}

/**
 * Returns the home if it exists, so that a lookup does not create one.
 * @throws NotFoundError; what `hasTapes` throws
 */
export function getHome(home: Home): Home {
  if (hasTapesToRead(home)) return home;
  throw new NotFoundError(`cannot read the tapes of '${home.dir}': it has no tapes yet`, { home: home.dir });
}

/**
 * Where the name of a session leads on a terminal: to its worktree, while it has one, else to its raw traffic; undefined
 * for a session without files of its own. A tape is rows of a database that no program opens at one of them, and a link
 * that is the same for each session, to the home, says less than none. Made of the home and the id alone: what a tape
 * contains is no address.
 */
export function addressOf({ dir }: Pick<Home, 'dir'>, id: string): string | undefined {
  if (!isUlid(id)) return undefined;
  const own = [join(dir, 'worktrees', id), join(dir, 'logs', id, 'raw.jsonl')];
  const found = own.find((path) => existsSync(path));
  if (found === undefined) return undefined;
  const address = pathToFileURL(found);
  // A terminal on another machine knows by the name that it has no such file.
  address.hostname = hostname();
  return address.href;
}
