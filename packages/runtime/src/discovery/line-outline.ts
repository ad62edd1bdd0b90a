import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** The bytes that are kept of each text, and of a line. */
const textBytes = 1_024;
const lineBytes = 256 * 1024;

const [newline, quote, backslash, u] = [0x0a, 0x22, 0x5c, 0x75];

/** A space, a tab and the ends of lines; the bytes of a byte order mark. */
const blanks: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d, newline, 0xef, 0xbb, 0xbf]);

/** Where the first record of some bytes begins, at their end where they have none. Pure. */
export function beginOfRecord(bytes: Uint8Array): number {
  const at = bytes.findIndex((byte) => !blanks.has(byte));
  return at === -1 ? bytes.length : at;
}

/**
 * The first line of a file that has something, with the beginnings of its texts alone, however long it is: what tool wrote a
 * record is in its short ones. A line that has too many values for that gives no record.
 */
export class LineOutline {
  readonly #kept = Buffer.allocUnsafe(lineBytes);
  #length = 0;
  #isOver = false;
  /** In a text, how many bytes of it were kept; more than are kept where it goes on. */
  #inText: number | undefined;
  /** How many bytes of an escape are still to come. */
  #escape = 0;

  push(chunk: Uint8Array): void {
    const from = this.#length === 0 ? beginOfRecord(chunk) : 0;
    for (let at = from; at < chunk.length && !this.#isOver; at += 1) this.#take(chunk[at] ?? newline);
  }

  #take(byte: number): void {
    const inText = this.#inText;
    if (byte === newline) this.#isOver = true;
    else if (inText === undefined) this.#keep(byte, byte === quote ? 0 : undefined);
    else if (this.#escape > 0) {
      this.#escape = byte === u && this.#escape === 1 ? 4 : this.#escape - 1;
      // What has begun is kept whole.
      if (inText <= textBytes) this.#keep(byte, inText);
    } else if (byte === quote) this.#keep(byte, undefined);
    else {
      if (byte === backslash) this.#escape = 1;
      if (inText < textBytes) this.#keep(byte, inText + 1);
      else this.#inText = textBytes + 1;
    }
  }

  /** The record of the line, where it has ended. */
  records(): readonly JsonObject[] {
    try {
      const record: unknown = JSON.parse(this.#kept.toString('utf8', 0, this.#length));
      return isObject(record) ? [record] : [];
    } catch {
      return [];
    }
  }

  #keep(byte: number, inText: number | undefined): void {
    this.#inText = inText;
    if (this.#length === lineBytes) {
      this.#isOver = true;
      return;
    }
    this.#kept[this.#length] = byte;
    this.#length += 1;
  }
}
