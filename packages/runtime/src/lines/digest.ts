import { createHash, type Hash } from 'node:crypto';
import { ImportError } from './errors.ts';
import { shown } from './json-line.ts';

/**
 * What content is known by: a digest of each whole block, and one of what follows. Two digests tell up to which block
 * contents agree, and reading on needs no more of the old content than its last, incomplete block.
 */
export interface Digest {
  /** Bytes of the content. */
  readonly size: number;
  readonly blocks: readonly string[];
  /** Of the bytes behind the last whole block: always some, unless the content is empty. */
  readonly tail: string;
}

/** The bytes of a whole block. */
export const blockBytes: number = 1024 * 1024;

/** The beginning of the block in which content of a size ends: a block is whole when something follows it. Pure. */
export function blockStart(size: number): number {
  return Math.max(Math.ceil(size / blockBytes) - 1, 0) * blockBytes;
}

/** Digests content while it is read, and keeps the digest up to its last newline. */
export class ContentDigest {
  readonly #known: Digest;
  readonly #blocks: string[];
  #size: number;
  #inBlock = 0;
  #block: Hash = createHash('sha256');
  /** Up to the last newline; the rest of the content is digested, and does not count yet. */
  #settled: { readonly size: number; readonly block: Hash };

  constructor(known: Digest) {
    this.#known = known;
    this.#blocks = [...known.blocks];
    this.#size = blockStart(known.size);
    this.#settled = { size: this.#size, block: this.#block.copy() };
  }

  /**
   * Checks that what was taken so far is what an earlier reading has digested.
   * @throws IMPORT_SOURCE_CHANGED
   */
  assertKnown(file: string): void {
    if (this.value().tail === this.#known.tail) return;
    throw otherContent(file, blockStart(this.#known.size));
  }

  push(chunk: Uint8Array): void {
    const end = chunk.lastIndexOf(0x0a) + 1;
    if (end > 0) {
      this.#take(chunk.subarray(0, end));
      this.#settle();
    }
    if (end < chunk.length) this.#take(chunk.subarray(end));
  }

  /** Takes a piece of content of which all counts, however it ends. */
  pushAll(chunk: Uint8Array): void {
    this.#take(chunk);
    this.#settle();
  }

  value(): Digest {
    const { size, block } = this.#settled;
    const tail = size === 0 ? '' : textOf(block.copy());
    return { size, blocks: this.#blocks.slice(0, blockStart(size) / blockBytes), tail };
  }

  #settle(): void {
    this.#settled = { size: this.#size, block: this.#block.copy() };
  }

  #take(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length; ) {
      if (this.#inBlock === blockBytes) {
        this.#blocks.push(textOf(this.#block));
        this.#block = createHash('sha256');
        this.#inBlock = 0;
      }
      const to = Math.min(bytes.length, from + blockBytes - this.#inBlock);
      this.#block.update(bytes.subarray(from, to));
      this.#inBlock += to - from;
      this.#size += to - from;
      from = to;
    }
  }
}

/** The error of a file that no longer has what an earlier reading read. */
export function otherContent(file: string, offset: number): ImportError {
  return new ImportError(
    'IMPORT_SOURCE_CHANGED',
    `cannot read on in ${shown(file)}: it has other content now`,
    { data: { file, offset } },
  );
}

/** The bytes at the beginning that two contents have in common, in whole blocks, or all of the shorter one. Pure. */
export function commonBytes(known: Digest, now: Digest): number {
  const differs = known.blocks.findIndex((block, i) => block !== now.blocks[i]);
  const blocks = differs === -1 ? known.blocks.length : differs;
  if (blocks < known.blocks.length || known.size !== now.size) return blocks * blockBytes;
  return known.tail === now.tail ? known.size : blocks * blockBytes;
}

/** 128 bits: it tells versions of files apart, and protects nothing. */
function textOf(hash: Hash): string {
  return hash.digest('hex').slice(0, 32);
}
