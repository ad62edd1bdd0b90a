import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { quote } from '@tapedeck/tape/internal';
import { cannotRead, reasonOf } from './open.ts';

/**
 * The content of a compressed file, on the disk while it is read: nothing in the file itself can be found by its offset. Its own
 * file is its owner's alone, and has no name: it goes with the process, however that ends.
 */
export class Spool {
  readonly path: string;
  #fd: number | undefined;
  #size = 0;

  /** @param path that of the compressed file */
  constructor(path: string) {
    this.path = path;
  }

  /** How much of the content is there. */
  get size(): number {
    return this.#size;
  }

  /**
   * Adds the next piece.
   * @throws IMPORT_CANNOT_READ where the disk takes no more
   */
  write(piece: Uint8Array): void {
    try {
      this.#fd ??= withoutName();
      for (let at = 0; at < piece.length; )
        at += writeSync(this.#fd, piece, at, piece.length - at, this.#size + at);
    } catch (cause) {
      throw cannotRead(
        this.path,
        `it is compressed, and its content finds no room meanwhile: ${reasonOf(cause)}`,
        cause,
      );
    }
    this.#size += piece.length;
  }

  /** Reads a part into a buffer, and returns how many bytes of it there are. */
  readInto(buffer: Uint8Array, from: number): number {
    let length = 0;
    while (this.#fd !== undefined && length < buffer.length) {
      const more = readSync(this.#fd, buffer, length, buffer.length - length, from + length);
      if (more === 0) break;
      length += more;
    }
    return length;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Opens a new file that has no name, where SQLite has its own: `/tmp` is often in memory. */
function withoutName(): number {
  const { TMPDIR } = process.env;
  let refused: unknown;
  for (const directory of [...(TMPDIR === undefined ? [] : [TMPDIR]), '/var/tmp', tmpdir()]) {
    const path = join(directory, `tape-${randomUUID()}`);
    try {
      const fd = openSync(path, 'wx+', 0o600);
      unlinkSync(path);
      return fd;
    } catch (cause) {
      refused ??= new Error(`${quote(directory)}: ${reasonOf(cause)}`, { cause });
    }
  }
  throw refused;
}
