import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  lstatSync,
  openSync,
  readdirSync,
  type Stats,
  statfsSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { TapeError } from '../errors.ts';
import { makeDirectories } from './directories.ts';
import { sync } from './sync.ts';

/** What opening queries of the machine. Tests inject other machines. */
export interface Probe {
  /** SQLite's version, e.g. `3.54.1`. */
  readonly sqliteVersion: (built: string) => string;
  /** The file system's type number, as in statfs(2). */
  readonly fileSystem: (dir: string) => number;
  /** The user of this process; undefined where the system has no users. */
  readonly uid: () => number | undefined;
  /** The owner of a file. */
  readonly ownerOf: (stat: Stats) => number;
}

export const machineProbe: Probe = {
  sqliteVersion: (built) => built,
  fileSystem: (dir) => statfsSync(dir).type,
  uid: () => process.getuid?.(),
  ownerOf: (stat) => stat.uid,
};

/** How many bytes this user can still write on the disk of a file; undefined where that is unknown. */
export function roomAt(file: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

/** File systems on which SQLite's locks or shared memory are not reliable. */
const unsafeFileSystems: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4266872130: 'SMB',
  4283649346: 'CIFS',
  16914839: '9p',
  1702057286: 'FUSE',
};

/** The oldest SQLite without the WAL-reset bug. */
const sqliteVersionMin = '3.51.3';

/**
 * Creates the directory of a database if it does not exist, and rejects one that other users can enter,
 * because tapes hold entire conversations. Returns a warning if it removed the access of other users.
 * @throws TAPE_CANNOT_OPEN, TAPE_UNSAFE_PLACE
 */
export function prepareDirectory(
  file: string,
  { probe, allowUnsafe }: { probe: Probe; allowUnsafe: boolean },
): string | undefined {
  const dir = dirname(file);
  const made = makeDirectories(dir, 0o700);
  if (made !== undefined) {
    chmodSync(dir, 0o700); // The umask removes bits from the mode, possibly the owner's own.
    syncParents(dir, made);
  }
  const stat = lstatSync(dir);
  if (!stat.isDirectory()) throw cannotOpen(file, `'${dir}' is not a directory`);
  assertOwner(file, dir, { stat, probe });
  const unsafe = unsafeFileSystems[probe.fileSystem(dir) >>> 0];
  if (unsafe !== undefined && !allowUnsafe)
    throw new TapeError(
      'TAPE_UNSAFE_PLACE',
      `cannot open '${file}': it is on ${unsafe}, where SQLite's locks are not reliable`,
      {
        data: { file, fileSystem: unsafe },
      },
    );
  if ((stat.mode & 0o077) === 0) return undefined;
  const names = readdirSync(dir);
  const ownName = names.includes(basename(file));
  // Before any change, an existing file of that name must be a database of this user.
  if (ownName) assertFile(file, probe);
  // A directory with the sticky bit, such as /tmp, is shared on purpose: closing it would lock other users
  // out.
  const shared = (stat.mode & 0o1000) !== 0;
  if (shared || (!ownName && names.some((name) => !isHomeFile(name))))
    throw new TapeError('TAPE_UNSAFE_PLACE', `cannot open '${file}': other users can enter '${dir}'`, {
      data: { file, ...(shared ? { sharedDir: dir } : { dir, mode: (stat.mode & 0o777).toString(8) }) },
    });
  assertWritable(file);
  chmodSync(dir, 0o700);
  return `closed '${dir}' to other users (mode 700)`;
}

/**
 * Checks that files can be made beside a database: SQLite would say no more than "unable to open database file".
 * @throws TAPE_CANNOT_OPEN with `data.readonly`
 */
export function assertWritable(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (cause) {
    const isReadonly = (cause as NodeJS.ErrnoException).code === 'EROFS';
    const why = isReadonly
      ? 'its file system is read-only'
      : `permission denied: '${dirname(file)}' cannot be written`;
    throw new TapeError('TAPE_CANNOT_OPEN', `cannot write '${file}': ${why}`, {
      data: { file, readonly: true },
      cause,
    });
  }
}

/**
 * Why a process cannot read a database in place, which needs files beside it: `EROFS` or `EACCES` for a directory
 * that it cannot write, `owner` for a database of another user. Undefined when it can.
 */
export function whyNotInPlace(
  file: string,
  { uid, ownerOf }: Pick<Probe, 'uid' | 'ownerOf'>,
): string | undefined {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'EACCES';
  }
  return uid() !== undefined && ownerOf(statSync(file)) !== uid() ? 'owner' : undefined;
}

/**
 * Syncs the parents of new directories: a directory is on disk once its parent is. SQLite syncs the database
 * itself.
 */
function syncParents(dir: string, made: string): void {
  const first = resolve(made);
  for (let at = resolve(dir); ; at = dirname(at)) {
    sync(dirname(at));
    if (at === first || at === dirname(at)) return;
  }
}

/**
 * Returns whether a tape home uses a file name: the database and SQLite's files beside it, copies from before
 * a schema change, the graph file and those put aside, `config.yaml`, the `run` directory with its file, the
 * `worktrees` directory with its worktrees (also those being removed), the `logs` directory with raw traffic, the
 * `remotes` directory with what was seen of each remote, the list of sources of imports, what imports have read of
 * sessions, the directory with the open ends of sources, and leftover drafts.
 */
export function isHomeFile(name: string): boolean {
  return homeFile.test(name);
}

const homeFile =
  /^(?:tape\.db(?:-wal|-shm|-journal|\.schema-\d+(?:\.\d+)?)?|session_graph\.jsonl(?:\.aside-.+)?|config\.yaml|run(?:\/(?:sessions\.json|import|import\.next\.[0-9a-f]{12}))?|worktrees(?:\/[0-7][0-9A-HJKMNP-TV-Z]{25}(?:\.gone)?)?|logs(?:\/[0-7][0-9A-HJKMNP-TV-Z]{25}(?:\/raw(?:\.1)?\.jsonl)?)?|sources\.jsonl(?:\.sessions|\.ends(?:\/[0-9a-f]{32}\.json)?)?|remotes(?:\/[A-Za-z][\w-]{0,63}\.[0-9a-f]{12})?|\.gitignore|.+\.[0-9a-f]{12}\.part(?:-wal|-shm|-journal)?)$/;

/**
 * Creates a database file with mode 0600, because SQLite would make it readable to all users; `-wal` and
 * `-shm` copy its mode. An existing file must be a regular file of this user with one name.
 * @throws TAPE_CANNOT_OPEN, TAPE_UNSAFE_PLACE
 */
export function prepareFile(file: string, probe: Probe): void {
  try {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const fd = openSync(file, flags, 0o600);
    fchmodSync(fd, 0o600);
    closeSync(fd);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST')
      throw cannotOpen(file, (cause as Error).message, cause);
    assertFile(file, probe);
  }
}

/** Whether a file does not exist, or has no bytes. */
export function isEmpty(path: string): boolean {
  return (lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/**
 * Checks an existing database file without opening it: closing a second descriptor would drop SQLite's locks.
 * A second hard link is rejected, because a database used under two names has two logs; the link of a
 * leftover draft is harmless.
 * @throws TAPE_CANNOT_OPEN, TAPE_UNSAFE_PLACE
 */
export function assertFile(file: string, probe: Probe): void {
  for (const path of [file, `${file}-wal`, `${file}-shm`, `${file}-journal`]) {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) {
      if (path === file) throw cannotOpen(file, 'the file does not exist');
      continue;
    }
    if (!stat.isFile()) throw cannotOpen(file, `'${path}' is not a regular file`);
    if (stat.nlink > 1 && stat.nlink > 1 + draftNames(path, stat))
      throw cannotOpen(file, `'${path}' has more than one hard link`);
    assertOwner(file, path, { stat, probe });
  }
}

/**
 * Counts the names of a file that are drafts: a backup that was killed after its final link still has both
 * names.
 */
function draftNames(path: string, { ino, dev }: Stats): number {
  const dir = dirname(path);
  return readdirSync(dir).filter((name) => {
    if (!name.startsWith(`${basename(path)}.`) || !name.endsWith('.part')) return false;
    const draft = lstatSync(join(dir, name), { throwIfNoEntry: false });
    return draft?.ino === ino && draft.dev === dev;
  }).length;
}

function assertOwner(file: string, path: string, { stat, probe }: { stat: Stats; probe: Probe }): void {
  const uid = probe.uid();
  if (uid !== undefined && probe.ownerOf(stat) !== uid)
    throw new TapeError('TAPE_UNSAFE_PLACE', `cannot open '${file}': '${path}' belongs to another user`, {
      data: { file, path, owner: probe.ownerOf(stat), uid },
    });
}

/** @throws TAPE_CANNOT_OPEN for a SQLite version that is known to lose data */
export function assertSqlite(file: string, version: string): void {
  const [found, least] = [version, sqliteVersionMin].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i += 1) {
    const difference = (found?.[i] ?? 0) - (least?.[i] ?? 0);
    if (difference > 0) return;
    if (difference < 0)
      throw cannotOpen(
        file,
        `SQLite ${version} can lose committed data; the oldest supported version is ${sqliteVersionMin}`,
      );
  }
}

export function cannotOpen(file: string, why: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_CANNOT_OPEN', `cannot open '${file}': ${why}`, { cause });
}
