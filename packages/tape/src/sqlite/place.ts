import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  type Stats,
  statfsSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { TapeError } from '../errors.ts';
import { sync } from './sync.ts';

/** What opening asks the machine; injected where a test needs a machine that is not there. */
export interface Probe {
  /** SQLite's own version, `3.54.1` say. */
  readonly sqliteVersion: (built: string) => string;
  /** The file system's type number, as statfs(2) gives it. */
  readonly fileSystem: (dir: string) => number;
  /** The user that this process is, or undefined where there are none. */
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

/** File systems on which SQLite's locks or shared memory do not hold (R18). */
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
 * Makes the directory of a database if there is none, and refuses one that others can read or replace: tapes hold
 * everything that was said (R13, R18). Returns a warning when it closed the directory to others.
 * @throws TAPE_CANNOT_OPEN
 */
export function prepareDirectory(
  file: string,
  { probe, allowUnsafe }: { probe: Probe; allowUnsafe: boolean },
): string | undefined {
  const dir = dirname(file);
  const made = mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (made !== undefined) {
    chmodSync(dir, 0o700); // The umask takes bits from the mode, and may take the owner's own.
    syncParents(dir, made);
  }
  const stat = lstatSync(dir);
  if (!stat.isDirectory()) throw cannotOpen(file, `'${dir}' is not a directory`);
  assertOwner(file, dir, { stat, probe });
  const unsafe = unsafeFileSystems[probe.fileSystem(dir) >>> 0];
  if (unsafe !== undefined && !allowUnsafe)
    throw new TapeError(
      'TAPE_UNSAFE_PLACE',
      `cannot open '${file}': it is on ${unsafe}, where locks do not hold`,
      {
        data: { file, fileSystem: unsafe },
      },
    );
  if ((stat.mode & 0o077) === 0) return undefined;
  const names = readdirSync(dir);
  const ownName = names.includes(basename(file));
  // What is there under that name must be a file of ours before anything is changed for its sake.
  if (ownName) assertFile(file, probe);
  // A directory with the sticky bit, as /tmp, is for others on purpose: closing it would shut them out.
  const shared = (stat.mode & 0o1000) !== 0;
  if (shared || (!ownName && names.some((name) => !isHomeFile(name))))
    throw new TapeError('TAPE_UNSAFE_PLACE', `cannot open '${file}': others can enter '${dir}'`, {
      data: { file, ...(shared ? { sharedDir: dir } : { dir, mode: (stat.mode & 0o777).toString(8) }) },
    });
  chmodSync(dir, 0o700);
  return `closed '${dir}' to others (mode 700)`;
}

/** A directory is on disk once the one that holds it is; SQLite sees to what is in it. */
function syncParents(dir: string, made: string): void {
  const first = resolve(made);
  for (let at = resolve(dir); ; at = dirname(at)) {
    sync(dirname(at));
    if (at === first || at === dirname(at)) return;
  }
}

/**
 * Whether a name is one that a tape home gives its files: the database and what SQLite keeps beside it, copies from
 * before a change of schema, the graph file and those put aside, the directory of what is being run and the file in it, the
 * directory of worktrees and those in it, one being removed too, and drafts that were left behind.
 */
export function isHomeFile(name: string): boolean {
  return homeFile.test(name);
}

const homeFile =
  /^(?:tape\.db(?:-wal|-shm|-journal|\.schema-\d+(?:\.\d+)?)?|session_graph\.jsonl(?:\.aside-.+)?|config\.yaml|run(?:\/sessions\.json)?|worktrees(?:\/[0-7][0-9A-HJKMNP-TV-Z]{25}(?:\.gone)?)?|\.gitignore|.+\.[0-9a-f]{12}\.part(?:-wal|-shm|-journal)?)$/;

/**
 * Creates a database file with its mode before SQLite does, which would leave it readable to all; `-wal` and `-shm`
 * take their mode from it. An existing one must be a regular file of ours with one name.
 * @throws TAPE_CANNOT_OPEN
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

/**
 * An existing file is never opened here: closing a second descriptor would drop SQLite's locks on it. A second name is
 * refused, since a database that is used under two names has two logs; a draft's is not, which nobody uses.
 */
export function assertFile(file: string, probe: Probe): void {
  for (const path of [file, `${file}-wal`, `${file}-shm`]) {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) {
      if (path === file) throw cannotOpen(file, 'there is no such file');
      continue;
    }
    if (!stat.isFile()) throw cannotOpen(file, `'${path}' is not a regular file`);
    if (stat.nlink > 1 && stat.nlink > 1 + draftNames(path, stat))
      throw cannotOpen(file, `'${path}' has more than one hard link`);
    assertOwner(file, path, { stat, probe });
  }
}

/** How many names a file has from drafts: a backup that was killed after it got its name has still both. */
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

/** @throws TAPE_CANNOT_OPEN for a SQLite that is known to lose data. */
export function assertSqlite(file: string, version: string): void {
  const [found, least] = [version, sqliteVersionMin].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i += 1) {
    const difference = (found?.[i] ?? 0) - (least?.[i] ?? 0);
    if (difference > 0) return;
    if (difference < 0)
      throw cannotOpen(
        file,
        `SQLite ${version} may lose what it acknowledged; ${sqliteVersionMin} is the oldest that will do`,
      );
  }
}

export function cannotOpen(file: string, why: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_CANNOT_OPEN', `cannot open '${file}': ${why}`, { cause });
}
