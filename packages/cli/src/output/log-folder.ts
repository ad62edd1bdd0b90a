import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { LogFile } from '@tapedeck/runtime';
import { makeDirectories } from '@tapedeck/tape/internal';
import { UsageError } from '../errors/kinds.ts';
import { systemFault } from '../errors/system-fault.ts';

/** A file that was written, and where its next entry goes. */
export interface WrittenLog {
  readonly file: string;
  readonly bytes: number;
}

/** Texts of a file. */
type Texts = AsyncIterable<string>;

/** Characters that are written at once. */
const chunkChars = 256 * 1024;

/**
 * Writes a file of the logs whole or not at all: under another name, which it then gives up. Replaces only a file that
 * renders the same session.
 * @throws UsageError for a file of another content, and for links
 */
export async function writeLog(dir: string, log: LogFile, texts: Texts): Promise<WrittenLog> {
  const file = join(dir, ...log.path);
  makeFolders(dir, log.path.slice(0, -1));
  assertOurs(file, log.firstLine);
  removeDrafts(file);
  const draft = `${file}.${process.pid}-${randomBytes(6).toString('hex')}.part`;
  try {
    const fd = openSync(draft, 'wx', 0o600);
    let bytes: number;
    try {
      bytes = await writeTexts(fd, 0, texts);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, file);
    return { file, bytes };
  } catch (cause) {
    rmSync(draft, { force: true });
    throw faultOf(file, cause);
  }
}

/**
 * Adds entries to a file at the place where they belong, so that two processes that add them write the same. Undefined, and
 * nothing is written, where the file is not the one that was written.
 */
export async function addToLog(
  { file, bytes }: WrittenLog,
  { firstLine }: Pick<LogFile, 'firstLine'>,
  texts: Texts,
): Promise<WrittenLog | undefined> {
  if (!isOurs(file, firstLine)) return undefined;
  try {
    const fd = openSync(file, constants.O_WRONLY | constants.O_NOFOLLOW);
    try {
      if (fstatSync(fd).size < bytes) return undefined;
      return { file, bytes: await writeTexts(fd, bytes, texts) };
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw faultOf(file, cause);
  }
}

/** Writes texts from a place on, and returns where they end. */
async function writeTexts(fd: number, from: number, texts: Texts): Promise<number> {
  let [at, kept] = [from, ''];
  const flush = () => {
    const bytes = Buffer.from(kept);
    for (let done = 0; done < bytes.length; )
      done += writeSync(fd, bytes, done, bytes.length - done, at + done);
    at += bytes.length;
    kept = '';
  };
  for await (const text of texts) {
    kept += text;
    if (kept.length >= chunkChars) flush();
  }
  flush();
  return at;
}

function faultOf(file: string, cause: unknown): unknown {
  const isSystem = cause instanceof Error && 'syscall' in cause;
  return isSystem ? new Error(`cannot write the log '${file}': ${systemFault(cause)}`, { cause }) : cause;
}

/** Makes the folder of the logs, and those below it that lead to a file. */
function makeFolders(dir: string, names: readonly string[]): void {
  for (const depth of [0, ...names.keys().map((i) => i + 1)]) {
    const path = join(dir, ...names.slice(0, depth));
    const stat = statOf(path);
    if (stat === undefined)
      try {
        makeDirectories(path, 0o700);
      } catch (cause) {
        // Another process has made it.
        if (statOf(path)?.isDirectory() !== true) throw faultOf(path, cause);
      }
    else if (!stat.isDirectory())
      throw new UsageError(`cannot write logs to '${path}': it is ${kindOf(stat)}`, {
        hint: 'name a directory, or one that does not exist yet',
      });
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw faultOf(path, cause);
  }
}

function kindOf(stat: Stats): string {
  if (stat.isSymbolicLink()) return 'a symbolic link';
  if (stat.isDirectory()) return 'a directory';
  if (stat.isFile()) return 'a file';
  if (stat.isFIFO()) return 'a pipe';
  return stat.isSocket() ? 'a socket' : 'a device';
}

/** @throws UsageError for what is not a file of the same session */
function assertOurs(file: string, firstLine: string): void {
  const stat = statOf(file);
  if (stat === undefined || isOurs(file, firstLine)) return;
  const what = stat.isFile() ? 'another file' : kindOf(stat);
  throw new UsageError(`cannot write the log '${file}': there is ${what} of this name`, {
    data: { file },
    hint: 'name another directory, or one that only logs of the same session are in',
  });
}

/** Whether a file renders the same session: its first line says so. */
function isOurs(file: string, firstLine: string): boolean {
  if (statOf(file)?.isFile() !== true) return false;
  const line = Buffer.from(`${firstLine}\n`);
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const begin = Buffer.alloc(line.length);
      return readSync(fd, begin, 0, begin.length, 0) === line.length && begin.equals(line);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw faultOf(file, cause);
  }
}

/** Removes what processes of this machine left of a file that were killed. */
function removeDrafts(file: string): void {
  const folder = dirname(file);
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const [, pid] = path.startsWith(`${file}.`)
      ? (/^(\d+)-[0-9a-f]{12}\.part$/.exec(path.slice(file.length + 1)) ?? [])
      : [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(path, { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
