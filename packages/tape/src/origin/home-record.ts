import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crashPoint } from '../crash-point.ts';
import type { Elsewhere } from './elsewhere.ts';
import { isOwnLog, keepLog } from './own-log.ts';
import { filesIn, homesIn, makeHomes, readOwn, realPath } from './state-files.ts';

/**
 * How a home became one of this user: `created` by a program of this user, `trusted` by the user, or `named`, such as
 * with `--home`, which consents to reading and writing it.
 */
export type HomeConsent = 'created' | 'trusted' | 'named';

/** What this user's state directory records of one home. */
export interface HomeRecord {
  /** The real path of the home. */
  readonly path: string;
  /** The id in the home. A copy has it too. */
  readonly home: string;
  /** The inode of `tape.db`: a file that replaces it has another. */
  readonly file: string;
  /** When that file was made, in nanoseconds, where the file system says: an inode can be used again. */
  readonly born?: string;
  readonly consent: HomeConsent;
  /** When it was recorded, ISO 8601. */
  readonly at: string;
  /** What it contained then. */
  readonly elsewhere: Elsewhere;
  /** SHA-256 of the `config.yaml` that it had then, from another user or machine; null without one. */
  readonly config: string | null;
  /** SHA-256 of a later `config.yaml` that the user trusted. */
  readonly edited?: string;
}

/** Reads the records of a state directory, in the order of their paths. Skips what is no record. */
export function homeRecords(state: string): readonly HomeRecord[] {
  return filesIn(state, ending)
    .flatMap((file) => parse(file) ?? [])
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * The record of the home at a path, as long as the database there is still the recorded file, without a log that others
 * put beside it.
 */
export function homeRecord(state: string, dir: string): HomeRecord | undefined {
  const path = realPath(dir);
  const record = parse(fileOf(state, path));
  if (record === undefined || record.path !== path) return undefined;
  const { file, born } = fileIn(path);
  const isSame = record.file === file && (record.born === undefined || record.born === born);
  const isKnown = record.consent === 'created' || isOwnLog(logsOf(state, path), path);
  return isSame && isKnown ? record : undefined;
}

/**
 * Records the log beside the database of a home that came from elsewhere, which a process of this user has opened: it
 * stays where the process is killed. Any other log can have come with the home later.
 */
export function recordLog(state: string, dir: string): void {
  const path = realPath(dir);
  const consent = parse(fileOf(state, path))?.consent;
  if (consent !== undefined && consent !== 'created') keepLog(logsOf(state, path), path);
}

/**
 * Records a home, in place of an earlier record of its path.
 * @throws a file system error when the state directory cannot be written
 */
export function recordHome(
  state: string,
  dir: string,
  fields: Omit<HomeRecord, 'path' | 'file' | 'born'>,
): HomeRecord {
  crashPoint('home/opened');
  const path = realpathSync(dir);
  const record: HomeRecord = { path, ...fileIn(path), ...fields };
  const file = fileOf(state, path);
  makeHomes(state);
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, `${JSON.stringify({ v: 1, ...record })}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
  recordLog(state, path);
  removeGone(state);
  return record;
}

/** Removes the record of a path; whether there was one. */
export function forgetHome(state: string, dir: string): boolean {
  const file = fileOf(state, realPath(dir));
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return false;
  rmSync(file);
  rmSync(logsOf(state, realPath(dir)), { force: true });
  return true;
}

/** The digest of the `config.yaml` of a home; null without one. */
export function configIn(dir: string): string | null {
  const file = join(dir, 'config.yaml');
  try {
    if (!statSync(file).isFile()) return null;
    return createHash('sha256').update(readFileSync(file)).digest('hex');
  } catch {
    return null;
  }
}

const ending = '.json';
/** How many records are kept of homes that may be gone, such as those of tests. */
const recordsMax = 1_000;

/** The greatest length of a file name that leaves room for what is added to it. */
const nameMax = 200;

/** The file of a path's record: its name is the path, or the digest of a long one. */
function fileOf(state: string, path: string): string {
  const name = encodeURIComponent(path.toWellFormed());
  // Node.js loads a digest in more time than most command lines take.
  const isShort = name.length <= nameMax;
  const file = isShort ? name : createHash('sha256').update(path).digest('hex').slice(0, 32);
  return join(homesIn(state), `${file}${ending}`);
}

/** Removes the records of homes that are gone, once there are many. */
function removeGone(state: string): void {
  const files = filesIn(state, ending);
  if (files.length <= recordsMax) return;
  for (const file of files) {
    const path = parse(file)?.path;
    if (path === undefined || statSync(path, { throwIfNoEntry: false }) === undefined)
      for (const one of [file, file.replace(/json$/, 'log')]) rmSync(one, { force: true });
  }
}

/** A record; undefined for anything else, and for a file that other users can write. */
function parse(file: string): HomeRecord | undefined {
  const { v, ...record } = (readOwn(file) ?? {}) as HomeRecord & { readonly v: unknown };
  const { path, home, file: inode, elsewhere } = record;
  const isWhole =
    v === 1 &&
    [path, home, inode].every((field) => typeof field === 'string') &&
    [elsewhere?.entries, elsewhere?.inbox].every(Number.isInteger);
  return isWhole ? record : undefined;
}

/** The recorded log of a home, beside its record. */
function logsOf(state: string, path: string): string {
  return fileOf(state, path).replace(/json$/, 'log');
}

function fileIn(path: string): Pick<HomeRecord, 'file' | 'born'> {
  const stat = statSync(join(path, 'tape.db'), { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return { file: '' };
  const { ino, birthtimeNs, ctimeNs } = stat;
  // Where a file system does not know it, it is another time, which changes.
  const isKnown = birthtimeNs > 0n && birthtimeNs !== ctimeNs;
  return { file: ino.toString(), ...(isKnown && { born: birthtimeNs.toString() }) };
}
