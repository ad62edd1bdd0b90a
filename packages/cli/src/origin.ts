import { existsSync, readdirSync, realpathSync } from 'node:fs';
import type { Elsewhere, HomeStore } from '@tapedeck/tape';
import { crashPoint } from '@tapedeck/tape/crash-point';
import {
  claimHome,
  configIn,
  creatorOf,
  type HomeConsent,
  type HomeRecord,
  homeRecord,
  pause,
  placeFaults,
  recordHome,
  recordLog,
  stateDirectory,
  stateOf,
} from '@tapedeck/tape/internal';
import type { Owner } from '@tapedeck/tape/store';
import { ConfigError } from './errors/kinds.ts';
import type { Io } from './io.ts';

/** The directory of a home, and whether the command found it above the working directory. */
interface Place {
  readonly dir: string;
  /** Absent where the tapes are on a server: who may write them is said there. */
  readonly db?: string | undefined;
  readonly isFound: boolean;
}

type Env = Pick<Io, 'env'>;

/** Whether the user trusts every home, as in a container that starts without a record of any. */
export function trustsAll({ env }: Env): boolean {
  return env.TAPE_TRUST_HOME === '1';
}

/**
 * Whether a home was found, and not named, and is not this user's on this machine: it came with a repository, was moved,
 * or was restored. Verbs that only read may use it.
 */
export function isForeign(home: Place, io: Env): boolean {
  if (home.db === undefined || !home.isFound || trustsAll(io)) return false;
  return existsSync(home.db) ? !isOwn(recordOf(home, io)) : isFilled(home.dir);
}

/** What this user's state directory records of a home. */
export function recordOf({ dir }: Place, { env }: Env): HomeRecord | undefined {
  return homeRecord(stateDirectory(env), dir);
}

/**
 * Refuses to write in a foreign home, once no process of this user creates it.
 * @throws ConfigError CLI_FOREIGN_HOME
 */
export function assertOwn(home: Place, io: Env): void {
  const creator = awaitCreator(home, io);
  // One that has ended meanwhile has recorded it.
  if (isForeign(home, io)) throw foreignHome(home, creator);
}

/** How often it is looked whether a home is recorded, in milliseconds. */
const lookMs = 25;

/** Waits for the record of a home that a process creates; returns the last process that it waited for. */
function awaitCreator(home: Place, io: Env): Owner | undefined {
  let last: Owner | undefined;
  while (isUnrecorded(home, io)) {
    const creator = creatorOf(stateDirectory(io.env), home.dir);
    if (creator === undefined) break;
    last = creator;
    crashPoint('home/awaited');
    pause(lookMs);
  }
  return last;
}

function isUnrecorded(home: Place, io: Env): boolean {
  if (home.db === undefined || trustsAll(io)) return false;
  return existsSync(home.db) ? recordOf(home, io) === undefined : isForeign(home, io);
}

/** The error of a home that this user has not trusted. `creator`: who began to create it, and has not recorded that. */
export function foreignHome(home: Pick<Place, 'dir' | 'db'>, creator?: Owner): ConfigError {
  const hasTapes = home.db !== undefined && existsSync(home.db);
  const state = creator && stateOf(creator);
  const what =
    creator !== undefined
      ? `process ${creator.pid} on ${creator.host} (${state}) began to create it, and has not recorded that`
      : hasTapes
        ? 'this user did not create it on this machine, or it was moved, restored or replaced since'
        : 'it has files and no tapes, and this user did not create it';
  return new ConfigError('CLI_FOREIGN_HOME', `cannot write the tape home '${home.dir}': ${what}`, {
    data: {
      home: home.dir,
      tapes: hasTapes,
      faults: placeFaults(home.dir),
      ...(creator !== undefined && { creator: { pid: creator.pid, host: creator.host, state } }),
    },
  });
}

/**
 * Whether the `config.yaml` of a home is not this user's. That of a home that was created here is, unless it was there
 * before; that of a home without tapes, too, which the user named. What came with another home can change with it, such
 * as by `git pull`: there only a file counts that the user trusted with its content.
 */
export function isConfigForeign(home: Place, io: Env): boolean {
  if (home.db === undefined || trustsAll(io) || !existsSync(home.db)) return false;
  const record = recordOf(home, io);
  if (record === undefined) return true;
  const config = configIn(home.dir);
  return record.consent === 'created'
    ? record.config !== null && record.config === config
    : record.edited !== (config ?? undefined);
}

/**
 * Records that the `config.yaml` of a home has the given digest after a change that this user made with a command, or
 * that it still has what came with the home.
 */
export function rememberConfig(
  home: Place,
  { digest, isOwn }: { readonly digest: string; readonly isOwn: boolean },
  { env }: Env,
): void {
  const record = recordOf(home, { env });
  if (record === undefined) return;
  const fields =
    record.consent === 'created'
      ? { config: isOwn ? null : digest }
      : { config: record.config, ...(isOwn && { edited: digest }) };
  const { home: id, consent, at, elsewhere } = record;
  recordHome(stateDirectory(env), home.dir, { home: id, consent, at, elsewhere, ...fields });
}

/** Whether a home has tapes that were recorded before it came here. */
export function isFromElsewhere(home: Place, io: Env): boolean {
  if (home.db === undefined || trustsAll(io) || !existsSync(home.db)) return false;
  return (recordOf(home, io)?.elsewhere.entries ?? 1) > 0;
}

/** What counts of a home that can make something run: see `StoreOptions.trust`. */
export function trustIn(home: Place, io: Env): boolean | Elsewhere {
  return trustsAll(io) || (recordOf(home, io)?.elsewhere ?? false);
}

/** Says that this process creates a home, until it has recorded that. Without a record no one needs to wait for it. */
export function claim({ dir }: Pick<Place, 'dir'>, io: Env): Disposable | undefined {
  return trustsAll(io) ? undefined : claimHome(stateDirectory(io.env), dir);
}

/** Records that a home is this user's. A state directory that cannot be written leaves the home unrecorded. */
export function remember(
  { dir }: Pick<Place, 'dir'>,
  { homeId, elsewhere }: Pick<HomeStore, 'homeId' | 'elsewhere'>,
  { consent, hasOwnConfig, env }: { readonly consent: HomeConsent; readonly hasOwnConfig: boolean } & Env,
): void {
  try {
    const at = new Date().toISOString();
    const config = hasOwnConfig ? null : configIn(dir);
    recordHome(stateDirectory(env), dir, { home: homeId, elsewhere, consent, at, config });
  } catch {
    // A user without a home directory, or a read-only one.
  }
}

/** Records the log of a home that a command of this user has opened. */
export function rememberLog({ dir }: Pick<Place, 'dir'>, { env }: Env): void {
  try {
    recordLog(stateDirectory(env), dir);
  } catch {
    // A state directory that cannot be written: a log that a crash leaves needs trust again.
  }
}

/** A home that was only named belongs to this user only where it is named again. */
function isOwn(record: HomeRecord | undefined): boolean {
  return record !== undefined && record.consent !== 'named';
}

/** Whether a directory without tapes has files, other than the one that makes git ignore it. */
function isFilled(dir: string): boolean {
  return readdirSync(dir).some((name) => name !== '.gitignore');
}

/** Whether two paths are one directory. */
export function isSame(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return a === b;
  }
}
