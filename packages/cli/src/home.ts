import { hash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { makeDirectories } from '@tapedeck/tape/internal';
import { isUlid } from '@tapedeck/tape/store';
import { NotFoundError, UsageError } from './errors/kinds.ts';
import { shellWord } from './escape.ts';
import {
  doesExist,
  type FileHome,
  hasTapesInFile,
  isMade,
  openFileForReading,
  openFileForWriting,
  type WritingIo,
  type WritingOptions,
} from './file-home.ts';
import type { Io } from './io.ts';
import { isSame } from './origin.ts';
import { type Address, isAddress, openOnServer, parseAddress, sayDurability } from './server-home.ts';

/**
 * A tape home: a directory with `tape.db` and `session_graph.jsonl`, or a schema on a server, with a directory of this user
 * for what is not on tapes: the configuration, the files of runs, and what imports have read.
 */
export type Home = FileHome | ServerHome;

/** A home whose tapes are on a server. */
interface ServerHome extends Omit<FileHome, 'db' | 'graph' | 'server'> {
  readonly server: Address;
  readonly db?: undefined;
  readonly graph?: undefined;
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
  if (named !== undefined) return homeAt(named, { cwd, env });
  const own = ownHome(env);
  const found = nearest(cwd);
  if (found === undefined) return { ...directoryHome(own, cwd), isFallback: true };
  return { ...directoryHome(found, cwd), isFound: !isSame(found, own) };
}

/** The home that a word names: a directory, or the address of a schema on a server. */
export function homeAt(named: string, { cwd, env }: Pick<Io, 'env' | 'cwd'>): Home {
  if (!isAddress(named)) return directoryHome(named, cwd);
  const server = parseAddress(named);
  const { shown: name } = server;
  const place = hash('sha256', name).slice(0, 16);
  return { dir: join(ownHome(env), 'servers', place), name, server, isFallback: false, isFound: false };
}

function ownHome(env: Io['env']): string {
  return join(nonEmpty(env.HOME) ?? homedir(), '.tape');
}

/** The home of a directory. */
export function directoryHome(dir: string, cwd: string): FileHome {
  const at = resolve(cwd, dir);
  return {
    dir: at,
    name: at,
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

/**
 * Opens a home for writing, and creates it if it does not exist.
 * @throws what `openFileForWriting` and `openOnServer` throw
 */
export async function openForWriting(
  home: Home,
  io: WritingIo,
  options: WritingOptions = {},
): Promise<HomeStore> {
  if (home.server === undefined) return openFileForWriting(home, io, options);
  return await openServerForWriting(home, io, { access: 'create', ...options });
}

/**
 * Opens a home for writing that must exist.
 * @throws NotFoundError when it does not; what `openForWriting` throws
 */
export async function openExisting(
  home: Home,
  io: WritingIo,
  options: WritingOptions = {},
): Promise<HomeStore> {
  if (home.server === undefined) return await openForWriting(getHome(home), io, options);
  return await openServerForWriting(home, io, { access: 'write', ...options });
}

async function openServerForWriting(
  home: ServerHome,
  io: WritingIo,
  options: WritingOptions & { readonly access: 'create' | 'write' },
): Promise<HomeStore> {
  sayDurability(io, options);
  makeHome(home);
  return await openOnServer(home, io, options);
}

/**
 * Opens a home for reading. Writes nothing, not even the repairs that a crash left to do.
 * @throws NotFoundError when the home does not exist; what `openOnServer` throws
 */
export async function openForReading(home: Home, io: Pick<Io, 'env' | 'interrupted'>): Promise<HomeStore> {
  if (home.server !== undefined) return await openOnServer(home, io, { access: 'read' });
  getHome(home);
  return openFileForReading(home, io);
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

/** The bytes of a home from which an act on all of it saves memory: less makes too little garbage to matter. */
const largeBytes = 2_000_000;

/**
 * Whether an act on all of a home has to save memory. In a small one that would take a tenth of its time: under other
 * flags V8 compiles again what the build has compiled.
 */
export function isLarge({ db }: Pick<Home, 'db'>): boolean {
  if (db === undefined) return true;
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return size(db) + size(`${db}-wal`) > largeBytes;
}

/**
 * The word by which a file names a home that another program reads it from.
 * @throws UsageError for an address with a password
 */
export function keptName({ dir, server }: Home, act: string): string {
  if (server?.hasPassword === true)
    throw new UsageError(`cannot ${act}: the password of the home would stand in a file`, {
      hint: 'put the password into ~/.pgpass, and name the home without it',
    });
  return server?.given ?? dir;
}

/** Whether a home has a database. Of one on a server that is known when it is opened. */
export function hasDatabase(home: Home): boolean {
  return home.server !== undefined || isMade(home);
}

/**
 * The same, unless the directory has what is left of a home without its database.
 * @throws what `hasTapesInFile` throws
 */
export function hasTapes(home: Home): boolean {
  return home.server !== undefined || hasTapesInFile(home);
}

/**
 * Refuses a home that was named and has no directory: it is more often mistyped than empty.
 * @throws NotFoundError
 */
export function assertThere(home: Home): void {
  if (home.server === undefined && !home.isFallback && !home.isFound && !doesExist(home.dir))
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
  throw noTapes(home);
}

/** The error of a home that has no tapes yet. `about`: further facts for programs. */
export function noTapes(home: Home, about: Readonly<Record<string, unknown>> = {}): NotFoundError {
  return new NotFoundError(`cannot read the tapes of '${home.dir}': it has no tapes yet`, {
    home: home.dir,
    empty: true,
    ...about,
  });
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
