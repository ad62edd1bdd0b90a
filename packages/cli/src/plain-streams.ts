import { fstatSync, readSync, statSync, writeSync } from 'node:fs';

/**
 * Whether a descriptor of this process is a file, a pipe or no device (`/dev/null`), which calls of the system read and
 * write. The streams of Node.js, which terminals and other systems need, take as long to load as opening a database.
 */
export function isPlain(fd: 0 | 1): boolean {
  if (process.platform === 'win32') return false;
  try {
    const stat = fstatSync(fd);
    return stat.isFile() || stat.isFIFO() || stat.isSocket() || stat.rdev === statSync('/dev/null').rdev;
  } catch {
    return false;
  }
}

/** Whether a descriptor of this process is a pipe. */
export function isPipe(fd: 0): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isFIFO() || stat.isSocket();
  } catch {
    return false;
  }
}

/** Reads a plain descriptor to its end. What cannot be read without waiting comes from the stream `rest`. */
export async function* chunksOf(fd: 0, rest: () => AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(2 ** 16);
  for (;;) {
    let size: number;
    try {
      size = readSync(fd, buffer);
    } catch (error) {
      if (!isAgain(error)) throw error;
      yield* rest();
      return;
    }
    if (size === 0) return;
    yield Buffer.from(buffer.subarray(0, size));
  }
}

/** Writes to a plain descriptor, and returns what it does not take now: a pipe that is full, and does not wait. */
export function writeTo(fd: 1, bytes: Uint8Array): Uint8Array {
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(fd, bytes, done);
    } catch (error) {
      if (!isAgain(error)) throw error;
      return bytes.subarray(done);
    }
  }
  return new Uint8Array();
}

function isAgain(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EAGAIN';
}
