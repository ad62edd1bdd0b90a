import { createHash, randomUUID } from 'node:crypto';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Elsewhere } from './elsewhere.ts';

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
  return filesIn(state)
    .flatMap((file) => parse(file) ?? [])
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The record of the home at a path, as long as the database there is still the recorded file. */
export function homeRecord(state: string, dir: string): HomeRecord | undefined {
  const path = realPath(dir);
  const record = parse(fileOf(state, path));
  return record !== undefined && record.path === path && record.file === inodeIn(path) ? record : undefined;
}

/**
 * Records a home, in place of an earlier record of its path.
 * @throws a file system error when the state directory cannot be written
 */
export function recordHome(
  state: string,
  dir: string,
  fields: Omit<HomeRecord, 'path' | 'file'>,
): HomeRecord {
  const path = realpathSync(dir);
  const record: HomeRecord = { path, file: inodeIn(path) ?? '', ...fields };
  const file = fileOf(state, path);
  // It makes no home directory for a user who has none.
  statSync(dirname(dirname(state)));
  mkdirSync(join(state, directory), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, `${JSON.stringify({ v: 1, ...record })}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
  removeGone(state);
  return record;
}

/** Removes the record of a path; whether there was one. */
export function forgetHome(state: string, dir: string): boolean {
  const file = fileOf(state, realPath(dir));
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return false;
  rmSync(file);
  return true;
}

/** The digest of the `config.yaml` of a home; null without one. */
export function configIn(dir: string): string | null {
  try {
    return createHash('sha256')
      .update(readFileSync(join(dir, 'config.yaml')))
      .digest('hex');
  } catch {
    return null;
  }
}

const directory = 'homes';
/** How many records are kept of homes that may be gone, such as those of tests. */
const recordsMax = 1_000;

function fileOf(state: string, path: string): string {
  return join(state, directory, `${createHash('sha256').update(path).digest('hex').slice(0, 32)}.json`);
}

function filesIn(state: string): readonly string[] {
  const dir = join(state, directory);
  try {
    return readdirSync(dir).flatMap((name) => (name.endsWith('.json') ? [join(dir, name)] : []));
  } catch {
    return [];
  }
}

/** Removes the records of homes that are gone, once there are many. */
function removeGone(state: string): void {
  const files = filesIn(state);
  if (files.length <= recordsMax) return;
  for (const file of files) {
    const path = parse(file)?.path;
    if (path === undefined || statSync(path, { throwIfNoEntry: false }) === undefined)
      rmSync(file, { force: true });
  }
}

/** A record; undefined for anything else, and for a file that other users can write. */
function parse(file: string): HomeRecord | undefined {
  try {
    const { mode, uid } = statSync(file);
    const own = process.getuid?.() ?? uid;
    if ((uid !== own && uid !== 0) || (mode & 0o022) !== 0) return undefined;
    const { v, ...record } = JSON.parse(readFileSync(file, 'utf8')) as HomeRecord & { readonly v: unknown };
    const { path, home, file: inode, elsewhere } = record;
    const isWhole =
      v === 1 &&
      [path, home, inode].every((field) => typeof field === 'string') &&
      [elsewhere.entries, elsewhere.inbox].every(Number.isInteger);
    return isWhole ? record : undefined;
  } catch {
    return undefined;
  }
}

function realPath(dir: string): string {
  try {
    return realpathSync(dir);
  } catch {
    return dir;
  }
}

function inodeIn(path: string): string | undefined {
  return statSync(join(path, 'tape.db'), { bigint: true, throwIfNoEntry: false })?.ino.toString();
}
