import { randomUUID } from 'node:crypto';
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { quote } from '@tapedeck/tape/internal';
import { cannotRead, readInto, reasonOf } from './open.ts';

/**
 * The content of a compressed file, on the disk while it is read: nothing in the file itself can be found by its offset. Its own
 * file is its owner's alone, and has no name: it goes with the process, however that ends.
 */
export class Spool {
  readonly path: string;
  #place: { readonly fd: number; readonly directory: string } | undefined;
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
      this.#place ??= withoutName();
      for (let at = 0; at < piece.length; )
        at += writeSync(this.#place.fd, piece, at, piece.length - at, this.#size + at);
    } catch (cause) {
      const where = this.#place === undefined ? '' : ` in ${quote(this.#place.directory)}`;
      const why = `it is compressed, and its content cannot be kept${where} while it is read: ${reasonOf(cause)}`;
      throw cannotRead(this.path, why, cause);
    }
    this.#size += piece.length;
  }

  /** Reads a part into a buffer, and returns how many bytes of it there are: none once it is closed. */
  readInto(buffer: Uint8Array, from: number): number {
    return this.#place === undefined
      ? 0
      : readInto({ path: this.path, fd: this.#place.fd }, { buffer, from });
  }

  close(): void {
    if (this.#place !== undefined) closeSync(this.#place.fd);
    this.#place = undefined;
  }
}

/** Opens a new file that has no name, where SQLite has its own: `/tmp` is often in memory. */
function withoutName(): { readonly fd: number; readonly directory: string } {
  const { TMPDIR } = process.env;
  let refused: unknown;
  for (const directory of [...(TMPDIR === undefined ? [] : [TMPDIR]), '/var/tmp', tmpdir()]) {
    const path = join(directory, `tape-${randomUUID()}`);
    try {
      const fd = openSync(path, 'wx+', 0o600);
      unlinkSync(path);
      return { fd, directory };
    } catch (cause) {
      refused ??= new Error(`${quote(directory)}: ${reasonOf(cause)}`, { cause });
    }
  }
  throw refused;
}
