import { type BigIntStats, fstatSync, readSync, statSync } from 'node:fs';
import { quote } from '@tapedeck/tape/internal';
import { Descriptor } from './descriptor.ts';
import { ImportError } from './errors.ts';

/**
 * What the system says of a file. An import that finds nothing new compares that of each file: numbers take the least time. A
 * number that would lose digits is a text.
 */
export interface FileFacts {
  readonly device: number | string;
  readonly inode: number | string;
  readonly size: number;
  /** In milliseconds since 1970, to less than half a microsecond, in which no file is written twice. */
  readonly modified: number;
}

/** A regular file that is open for reading. */
export interface OpenFile {
  readonly path: string;
  /** At the time it was opened: what is written behind this size is left to the next import. */
  readonly facts: FileFacts;
  /**
   * The bytes from an offset to the size that the file had when it was opened; fewer if it was shortened since. With
   * `isBrief` each chunk is good until the next one, which takes its place in memory.
   */
  chunks(from: number, options?: { readonly isBrief: boolean }): Generator<Uint8Array>;
  /** Reads a part into a buffer, and returns how many bytes of it there are: fewer if the file was shortened since. */
  readInto(buffer: Uint8Array, from: number): number;
  /** What happened to the file since it was opened. */
  since(): Change;
  close(): void;
}

/** What became of a file while it was read. Only what was read of a file that stayed or grew can be read on later. */
type Change = 'none' | 'grown' | 'rewritten' | 'shortened' | 'replaced' | 'gone';

const chunkBytes = 256 * 1024;

/**
 * Opens a file, and follows links to it. What is no regular file is refused without waiting: a pipe would be read until
 * someone writes to it.
 * @throws IMPORT_CANNOT_READ
 */
export function openFile(path: string): OpenFile {
  let file: Descriptor | undefined;
  try {
    file = new Descriptor(path);
    if (!file.stat.isFile()) throw new Error(`it is ${kindOf(file.stat)}`);
    return openedAs(file);
  } catch (cause) {
    file?.close();
    throw cannotRead(path, reasonOf(cause), cause);
  }
}

function openedAs(file: Descriptor): OpenFile {
  const { path } = file;
  const facts = factsOf(file.stat);
  return {
    path,
    facts,
    *chunks(from, { isBrief } = { isBrief: false }) {
      const brief = isBrief
        ? Buffer.allocUnsafeSlow(Math.min(chunkBytes, Math.max(facts.size - from, 0)))
        : undefined;
      for (let at = from; at < facts.size; ) {
        const size = Math.min(chunkBytes, facts.size - at);
        const chunk = brief?.subarray(0, size) ?? Buffer.allocUnsafeSlow(size);
        const length = read(file, { chunk, at });
        if (length === 0) return;
        at += length;
        yield chunk.subarray(0, length);
      }
    },
    readInto: (buffer, from) => readInto(file, { buffer, from }),
    since: () => changeOf(facts, { now: factsNow(file), there: factsAt(path) }),
    close: () => file.close(),
  };
}

/**
 * Reads a part of an open file into a buffer, and returns how many bytes of it there are.
 * @throws IMPORT_CANNOT_READ
 */
export function readInto(
  file: Readable,
  { buffer, from }: { readonly buffer: Uint8Array; readonly from: number },
): number {
  let length = 0;
  while (length < buffer.length) {
    const more = read(file, { chunk: buffer.subarray(length), at: from + length });
    if (more === 0) break;
    length += more;
  }
  return length;
}

/** A file with a descriptor, which may be opened for it. */
interface Readable {
  readonly path: string;
  readonly fd: number;
}

function read(file: Readable, { chunk, at }: { chunk: Uint8Array; at: number }): number {
  try {
    return readSync(file.fd, chunk, 0, chunk.length, at);
  } catch (cause) {
    throw cannotRead(file.path, reasonOf(cause), cause);
  }
}

/** What the system says of an open file now; of one whose path another file has, or none, what it said. */
function factsNow(file: Descriptor): FileFacts {
  let { stat } = file;
  try {
    stat = fstatSync(file.fd, { bigint: true });
  } catch {
    // It was closed meanwhile, and what is at its path says what became of it.
  }
  return factsOf(stat);
}

/** Pure. `now`: of the open file; `there`: of the file that has its path now. */
function changeOf(
  before: FileFacts,
  { now, there }: { readonly now: FileFacts; readonly there: FileFacts | undefined },
): Change {
  if (now.size < before.size) return 'shortened';
  if (there === undefined) return 'gone';
  if (there.inode !== before.inode || there.device !== before.device) return 'replaced';
  if (now.size > before.size) return 'grown';
  return now.modified === before.modified ? 'none' : 'rewritten';
}

/** The facts of a regular file; undefined where there is none. One call of `stat`, which opens nothing. */
export function factsAt(path: string): FileFacts | undefined {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stat?.isFile() === true ? factsOf(stat) : undefined;
  } catch {
    // A loop of links, or a directory that cannot be entered: opening the file says which.
    return undefined;
  }
}

/** Whether there is surely no file any more: one in a directory that cannot be entered, or whose disk fails, may be there. */
export function isGone(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() !== true;
  } catch {
    return false;
  }
}

export function factsOf({ dev, ino, size, mtimeNs }: BigIntStats): FileFacts {
  // As `statSync` makes the number: what it gives without `bigint` can be compared with it.
  const modified = Number(mtimeNs / nsInSecond) * 1e3 + Number(mtimeNs % nsInSecond) / 1e6;
  return { device: withAllDigits(dev), inode: withAllDigits(ino), size: Number(size), modified };
}

const nsInSecond = 1_000_000_000n;

function withAllDigits(value: bigint): number | string {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : String(value);
}

/** What something is that is no regular file. */
export function kindOf(stat: Pick<BigIntStats, 'isDirectory' | 'isFIFO' | 'isSocket'>): string {
  if (stat.isDirectory()) return 'a directory';
  if (stat.isFIFO()) return 'a pipe';
  return stat.isSocket() ? 'a socket' : 'a device';
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it is gone',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'its links lead in a circle',
  ENOTDIR: 'a part of its path is no directory',
  ENXIO: 'it is a socket or a device',
};

/** Why the system refused something, in words. */
export function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  return (code === undefined ? undefined : reasons[code]) ?? message;
}

/** The error of a file that cannot be read. */
export function cannotRead(path: string, why: string, cause?: unknown, offset?: number): ImportError {
  return new ImportError('IMPORT_CANNOT_READ', `cannot read ${quote(path)}: ${why}`, {
    data: { file: path, why, ...(offset !== undefined && { offset }) },
    cause,
  });
}
