import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { openTapeStore, type SqliteTapeStore, type StoreOptions, TapeError } from '@tapedeck/tape';
import { secretsIn } from '@tapedeck/tape/internal';
import { NotFoundError, UsageError } from './errors/kinds.ts';
import type { Io } from './io.ts';

/** A tape home: a directory with `tape.db` and `session_graph.jsonl`. */
export interface Home {
  readonly dir: string;
  readonly db: string;
  readonly graph: string;
  /** Whether it is `~/.tape`, because no other home was named or found. */
  readonly isFallback: boolean;
  /** The realm of its sessions. Default: the one that the home records, else `tape`. */
  readonly base?: string;
}

/** `--home`, else `TAPE_HOME`, else the nearest `.tape` upward, else `~/.tape`. */
export function findHome(given: string | undefined, { env, cwd }: Pick<Io, 'env' | 'cwd'>): Home {
  // An unset variable in `--home "$X"` must not turn the working directory into a home.
  if (given === '') throw new UsageError('cannot use --home: it is empty');
  const found = given ?? nonEmpty(env.TAPE_HOME) ?? nearest(cwd);
  if (found !== undefined) return homeAt(found, cwd);
  return { ...homeAt(join(nonEmpty(env.HOME) ?? homedir(), '.tape'), cwd), isFallback: true };
}

export function homeAt(dir: string, cwd: string): Home {
  const at = resolve(cwd, dir);
  return {
    dir: at,
    db: join(at, 'tape.db'),
    graph: join(at, 'session_graph.jsonl'),
    isFallback: false,
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

/** Opens a home for writing, and creates it if it does not exist. */
export function openForWriting(
  home: Home,
  { env, err }: Pick<Io, 'env' | 'err'>,
  { durability, keepInboxes = false }: Pick<StoreOptions, 'durability' | 'keepInboxes'> = {},
): SqliteTapeStore {
  if (durability === 'fast') err('Durability fast: a power cut may lose the latest entries\n');
  return openTapeStore(home.db, {
    durability,
    keepInboxes,
    journal: openJournal(home.graph),
    allowUnsafePlace: env.TAPE_ALLOW_UNSAFE_FS === '1',
    onWarning: (text) => err(`${text}\n`),
    secrets: () => secretsIn(env),
    ...(home.base !== undefined && { base: home.base }),
  });
}

/**
 * Opens a home for reading. Writes nothing, not even the repairs that a crash left to do.
 * @throws NotFoundError when the home does not exist
 */
export function openForReading(home: Home): SqliteTapeStore {
  return openTapeStore(getHome(home).db, {
    readonly: true,
    ...(home.base !== undefined && { base: home.base }),
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
 * Returns the home if it exists, so that a lookup does not create one.
 * @throws NotFoundError
 */
export function getHome(home: Home): Home {
  if (doesExist(home.db)) return home;
  throw new NotFoundError(`cannot read the tapes of '${home.dir}': it has no tapes yet`, { home: home.dir });
}
