import { randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { TapeError } from '@tapedeck/tape';
import { makeDirectories } from '@tapedeck/tape/internal';
import { systemFault } from '../errors/system-fault.ts';

/** Records that are written or compared at once, in characters. */
const chunkChars = 64 * 1024;

/** How a file is brought up to date. */
export interface Mirroring<T> {
  /** Makes the whole text, in pieces of whole lines. */
  readonly pieces: () => AsyncGenerator<string, T>;
  /** Whether a file with other content is replaced: an entry that it has was rewound or redacted since. */
  readonly replaces: boolean;
}

/** Makes the folder of a session in a folder of sessions, for its user alone. */
export function makeSessionFolder(root: string, id: string): string {
  const folder = join(root, id);
  try {
    makeDirectories(folder, 0o700);
  } catch (cause) {
    throw faultOf(folder, cause);
  }
  return folder;
}

/**
 * Appends to a file what it lacks of a text. What it has is compared and not written again, so that a line that was cut off
 * is completed.
 * @throws TAPE_EXISTS for a file with other content, unless it is to be replaced: then the new one takes its name whole
 */
export async function mirrored<T>(file: string, { pieces, replaces }: Mirroring<T>): Promise<T> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
  const done = await withFile(file, flags, async (fd) => await extended(fd, pieces()));
  if (done !== undefined) return done.value;
  if (!replaces)
    throw new TapeError('TAPE_EXISTS', `cannot write '${file}': the file exists, with other content`, {
      data: { file },
    });
  return await replaced(file, async (fd) => {
    const made = await extended(fd, pieces());
    if (made === undefined) throw new Error(`cannot write '${file}': the draft has other content`);
    return made.value;
  });
}

/** Writes a small file whole: under another name, which it then gives up. */
export async function replaceFile(file: string, text: string): Promise<void> {
  await replaced(file, async (fd) => void writeSync(fd, text));
}

/** Compares what a file has with a text and writes the rest; undefined, with nothing written, where they differ. */
async function extended<T>(
  fd: number,
  pieces: AsyncGenerator<string, T>,
): Promise<{ readonly value: T } | undefined> {
  const { size } = fstatSync(fd);
  let [at, kept] = [0, ''];
  /** Whether the file goes on as the text does. */
  const flush = (): boolean => {
    const bytes = Buffer.from(kept);
    kept = '';
    const there = Math.min(bytes.length, Math.max(0, size - at));
    const before = Buffer.alloc(there);
    for (let read = 0; read < there; ) {
      const count = readSync(fd, before, read, there - read, at + read);
      if (count === 0) return false;
      read += count;
    }
    if (!before.equals(bytes.subarray(0, there))) return false;
    for (let done = there; done < bytes.length; )
      done += writeSync(fd, bytes, done, bytes.length - done, at + done);
    at += bytes.length;
    return true;
  };
  for (;;) {
    const { done, value } = await pieces.next();
    if (done !== true) kept += value;
    if ((done === true || kept.length >= chunkChars) && !flush()) {
      await pieces.return(undefined as T);
      return undefined;
    }
    if (done === true) return at < size ? undefined : { value };
  }
}

async function replaced<T>(file: string, write: (fd: number) => Promise<T>): Promise<T> {
  const draft = `${file}.${process.pid}-${randomBytes(6).toString('hex')}.part`;
  try {
    const value = await withFile(draft, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, write);
    renameSync(draft, file);
    return value;
  } catch (cause) {
    rmSync(draft, { force: true });
    throw faultOf(file, cause);
  }
}

async function withFile<T>(file: string, flags: number, act: (fd: number) => Promise<T>): Promise<T> {
  try {
    const fd = openSync(file, flags, 0o600);
    try {
      return await act(fd);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw faultOf(file, cause);
  }
}

function faultOf(file: string, cause: unknown): unknown {
  const isSystem = cause instanceof Error && 'syscall' in cause;
  return isSystem ? new Error(`cannot write '${file}': ${systemFault(cause)}`, { cause }) : cause;
}
