import type { ByteLine } from './byte-lines.ts';

/** A line, or one that was not kept since it is too long: it has no bytes, and its length is in `length`. */
export interface SplitLine extends ByteLine {
  readonly length: number;
  readonly isTooLong: boolean;
}

/** A place between two lines of a file. */
export interface LinePlace {
  /** The number of the line that begins here: 1, 2, 3 … */
  readonly line: number;
  /** Bytes of the content before it. */
  readonly offset: number;
}

/**
 * Splits chunks into lines at 0x0A, and leaves out those without content. Keeps at most `bytesMax` of a line that is not
 * complete: the rest of a longer one is counted and passed over.
 */
export class LineSplitter {
  readonly #bytesMax: number;
  #line: number;
  #offset: number;
  #pieces: Uint8Array[] = [];
  #length = 0;

  constructor({ line, offset }: LinePlace, { bytesMax }: { readonly bytesMax: number }) {
    this.#line = line;
    this.#offset = offset;
    this.#bytesMax = bytesMax;
  }

  /** Behind the last newline: where the next import begins. */
  get place(): LinePlace {
    return { line: this.#line, offset: this.#offset };
  }

  /** The lines that end in a chunk, whose bytes are good as long as those of the chunk. */
  push(chunk: Uint8Array): readonly SplitLine[] {
    const lines: SplitLine[] = [];
    let from = this.#pastBlank(chunk, 0);
    for (let to = chunk.indexOf(0x0a, from); to !== -1; to = chunk.indexOf(0x0a, from)) {
      this.#take(chunk.subarray(from, to));
      if (this.#length > 0) lines.push(this.#give(true));
      this.#line += 1;
      this.#offset += this.#length + 1;
      this.#pieces = [];
      this.#length = 0;
      from = this.#pastBlank(chunk, to + 1);
    }
    // The caller fills the memory of the chunk anew.
    this.#take(
      this.#length + chunk.length - from > this.#bytesMax
        ? chunk.subarray(from)
        : Buffer.from(chunk.subarray(from)),
    );
    return lines;
  }

  /** The last line, if no newline ends it. */
  rest(): SplitLine | undefined {
    return this.#length > 0 ? this.#give(false) : undefined;
  }

  /** Behind the lines without content that begin there: a small compressed file may become hundreds of millions of them. */
  #pastBlank(chunk: Uint8Array, from: number): number {
    if (this.#length > 0) return from;
    let end = from;
    for (let at = from; isBlank(chunk[at]); at += 1) {
      if (chunk[at] !== 0x0a) continue;
      this.#line += 1;
      end = at + 1;
    }
    this.#offset += end - from;
    return end;
  }

  #take(piece: Uint8Array): void {
    this.#length += piece.length;
    if (this.#length > this.#bytesMax) this.#pieces = [];
    else if (piece.length > 0) this.#pieces.push(piece);
  }

  #give(ended: boolean): SplitLine {
    const [first = new Uint8Array(0)] = this.#pieces;
    const isTooLong = this.#length > this.#bytesMax;
    const bytes = this.#pieces.length > 1 ? Buffer.concat(this.#pieces, this.#length) : first;
    const { line, offset } = this.place;
    return { line, offset, bytes, ended, length: this.#length, isTooLong };
  }
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x0a || byte === 0x20 || byte === 0x0d || byte === 0x09;
}
