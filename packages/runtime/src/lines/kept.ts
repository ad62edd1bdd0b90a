import type { JsonObject } from '@tapedeck/tape';
import { collecting, takenBy } from './collect.ts';
import { otherContent } from './digest.ts';
import type { JsonLine, RecordList } from './json-lines.ts';
import { type LineRecords, recordsOf } from './parse.ts';
import { type RecordPlace, RecordPlaces } from './record-places.ts';

/**
 * A file and the lines of it whose records stay in memory have at most these bytes together: of one of half of them all stay,
 * and of a larger one the less, the more is kept of its other records.
 */
const bothMax = 64 * 1024 * 1024;

/** Where the lines of a file are read again: a file that is open, or the content of a compressed one. */
export interface Content {
  readonly path: string;
  /** How much of it there is, by now. */
  readonly size: number;
  readInto(buffer: Uint8Array, from: number): number;
}

/** A longer line is read again each time. */
const keptLineMax = 1024 * 1024;

/** The bytes of lines read again whose records stay until others are: garbage of V8's young generation, then. */
const recentBytes = 32 * 1024;

/**
 * The records of an open file. Those of its first lines stay in memory, unless it is large, and a small file is parsed once;
 * the line of any other one is read again when a caller takes its value, so that a
 * file of any size takes the memory of its longest line.
 */
export class KeptLines implements RecordList {
  readonly #content: Content;
  readonly #bytes: number | undefined;
  /** The bytes of the records that are in memory. */
  #kept = 0;
  /** The records that are in memory, by their places. */
  readonly #there = new Map<number, JsonLine>();
  readonly #places = new RecordPlaces();
  readonly #recent = new Map<number, readonly JsonLine[]>();
  #recentBytes = 0;
  /** The bytes that were read last, and what follows them where lines are read in turn. */
  #buffer = Buffer.allocUnsafeSlow(64 * 1024);
  /** Where in the content they are, and how many. */
  #from = 0;
  #filled = 0;

  /** @param bytes how many of them may stay in memory, whatever the size is */
  constructor(content: Content, { bytes }: { readonly bytes?: number } = {}) {
    this.#content = content;
    this.#bytes = bytes;
  }

  get length(): number {
    return this.#places.length;
  }

  at(i: number): JsonLine | undefined {
    const at = i < 0 ? this.length + i : i;
    if (at < 0 || at >= this.length) return undefined;
    return this.#there.get(at) ?? new LineAgain(this, this.#places.at(at));
  }

  *values(): Generator<JsonLine, undefined> {
    for (let i = 0; i < this.length; i += 1) yield this.at(i) as JsonLine;
  }

  [Symbol.iterator](): Generator<JsonLine, undefined> {
    return this.values();
  }

  /** Adds the next record, which stays in memory if there is room. */
  push(record: JsonLine): void {
    const most = this.#bytes ?? bothMax - this.#content.size;
    // There is more content than when they were kept.
    if (this.#kept > most) {
      this.#there.clear();
      this.#kept = 0;
    }
    const room = most - this.#kept;
    const takes = record.bytes <= keptLineMax && record.bytes <= room ? takenBy(record) : undefined;
    if (takes !== undefined && takes <= room) {
      this.#kept += takes;
      this.#there.set(this.length, record);
    }
    this.#places.push(record);
  }

  /**
   * Reads a line again.
   * @throws IMPORT_SOURCE_CHANGED
   */
  read({ line, offset, bytes: length }: Omit<JsonLine, 'value'>): readonly JsonLine[] {
    const known = this.#recent.get(offset);
    if (known !== undefined) return known;
    // The values of other lines go first: those of two long ones need not be in memory.
    this.#recentBytes += length;
    for (const [at, [first]] of this.#recent) {
      if (this.#recentBytes <= recentBytes) break;
      this.#recent.delete(at);
      this.#recentBytes -= first?.bytes ?? 0;
    }
    const { records } = collecting(length, () => this.#parsed({ line, offset, bytes: length }));
    this.#recent.set(offset, records);
    return records;
  }

  #parsed({ line, offset, bytes: length }: Omit<JsonLine, 'value'>): LineRecords {
    const bytes = this.#bytesAt(offset, length);
    // Whether a newline ends it makes a difference to its faults alone.
    const split = { line, offset, bytes, length, ended: false, isTooLong: false };
    return recordsOf(split, this.#content.path);
  }

  /** Those of a line, until the next one is read: a record has none of them. */
  #bytesAt(offset: number, length: number): Uint8Array {
    // Those of long lines would stay.
    if (length > keptLineMax) {
      const place = Buffer.allocUnsafeSlow(length);
      return place.subarray(0, this.#content.readInto(place, offset));
    }
    const to = this.#from + this.#filled;
    if (offset < this.#from || offset + length > to) {
      // Lines are read in turn mostly, and a call of the system takes longer than the bytes.
      const isNext = this.#filled > 0 && offset >= this.#from && offset <= to + 1;
      if (this.#buffer.length < length)
        this.#buffer = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#buffer.length));
      const place = isNext ? this.#buffer : this.#buffer.subarray(0, length);
      [this.#from, this.#filled] = [offset, this.#content.readInto(place, offset)];
    }
    return this.#buffer.subarray(offset - this.#from, Math.min(offset - this.#from + length, this.#filled));
  }

  changed(offset: number): Error {
    return otherContent(this.#content.path, offset);
  }
}

/** A record whose value is not in memory. */
class LineAgain implements JsonLine {
  readonly line: number;
  readonly offset: number;
  readonly bytes: number;
  readonly #lines: KeptLines;
  readonly #part: number;

  constructor(lines: KeptLines, { line, offset, bytes, part }: RecordPlace) {
    this.line = line;
    this.offset = offset;
    this.bytes = bytes;
    this.#lines = lines;
    this.#part = part;
  }

  get isAway(): boolean {
    return true;
  }

  get value(): JsonObject {
    const again = this.#lines.read(this)[this.#part];
    if (again === undefined) throw this.#lines.changed(this.offset);
    return again.value;
  }
}
