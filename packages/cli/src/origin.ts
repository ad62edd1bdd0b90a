import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Elsewhere, SqliteTapeStore } from '@tapedeck/tape';
import {
  configIn,
  type HomeConsent,
  type HomeRecord,
  homeRecord,
  pause,
  placeFaults,
  recordHome,
  recordLog,
  stateDirectory,
} from '@tapedeck/tape/internal';
import { ConfigError } from './errors/kinds.ts';
import type { Io } from './io.ts';

/** The directory of a home, and whether the command found it above the working directory. */
interface Place {
  readonly dir: string;
  readonly db: string;
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
  if (!home.isFound || trustsAll(io)) return false;
  return existsSync(home.db) ? !isOwn(recordOf(home, io)) : isFilled(home.dir);
}

/** What this user's state directory records of a home. */
export function recordOf({ dir }: Place, { env }: Env): HomeRecord | undefined {
  return homeRecord(stateDirectory(env), dir);
}

/**
 * Refuses to write in a foreign home.
 * @throws ConfigError CLI_FOREIGN_HOME
 */
export function assertOwn(home: Place, io: Env): void {
  // Another process of this user may have created it a moment ago, and be about to record that.
  for (let wait = 0; wait < waitsMax && isForeign(home, io) && isYoung(home); wait += 1) pause(waitMs);
  if (!isForeign(home, io)) return;
  throw foreignHome(home);
}

/** The error of a home that this user has not trusted. */
export function foreignHome(home: Pick<Place, 'dir' | 'db'>): ConfigError {
  const hasTapes = existsSync(home.db);
  const what = hasTapes
    ? 'this user did not create it on this machine, or it was moved, restored or replaced since'
    : 'it has files and no tapes, and this user did not create it';
  return new ConfigError('CLI_FOREIGN_HOME', `cannot write the tape home '${home.dir}': ${what}`, {
    data: { home: home.dir, tapes: hasTapes, faults: placeFaults(home.dir) },
  });
}

/**
 * Whether the `config.yaml` of a home is not this user's. That of a home that was created here is, unless it was there
 * before; that of a home without tapes, too, which the user named. What came with another home can change with it, such
 * as by `git pull`: there only a file counts that the user trusted with its content.
 */
export function isConfigForeign(home: Place, io: Env): boolean {
  if (trustsAll(io) || !existsSync(home.db)) return false;
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
  if (trustsAll(io) || !existsSync(home.db)) return false;
  return (recordOf(home, io)?.elsewhere.entries ?? 1) > 0;
}

/** What counts of a home that can make something run: see `StoreOptions.trust`. */
export function trustIn(home: Place, io: Env): boolean | Elsewhere {
  return trustsAll(io) || (recordOf(home, io)?.elsewhere ?? false);
}

/** Records that a home is this user's. A state directory that cannot be written leaves the home unrecorded. */
export function remember(
  { dir }: Pick<Place, 'dir'>,
  { homeId, elsewhere }: Pick<SqliteTapeStore, 'homeId' | 'elsewhere'>,
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

const waitMs = 25;
const waitsMax = 40;
const youngMs = 2_000;

/** Whether the database or its log was made a moment ago, or what another process makes a database of. */
function isYoung({ db, dir }: Place): boolean {
  const files = existsSync(db) ? [db, `${db}-wal`] : readdirSync(dir).map((name) => join(dir, name));
  return files.some((file) => {
    const made = statSync(file, { throwIfNoEntry: false })?.birthtimeMs;
    return made !== undefined && Date.now() - made < youngMs;
  });
}

/** Whether two paths are one directory. */
export function isSame(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return a === b;
  }
}
