/**
 * Files of JSON lines, read piece by piece: a file of any size, plain or compressed, takes the memory of its longest line.
 * `open.ts` opens a regular file, and knows what happened to it meanwhile; `content.ts` decompresses; `splitter.ts` makes lines,
 * `parse.ts` records, and `digest.ts` what a later import knows the content by. A line is read again (`kept.ts`) out of the file or,
 * of a compressed one, out of its content on the disk (`spool.ts`). Imports the room `import`.
 */

import { collecting } from './collect.ts';
import { type ContentLimits, contentOf } from './content.ts';
import { blockStart, ContentDigest, type Digest, otherContent } from './digest.ts';
import { ImportError } from './errors.ts';
import { lineBytesMax, shown } from './json-line.ts';
import { type JsonLine, tooManyRecords } from './json-lines.ts';
import type { OpenFile } from './open.ts';
import { type LineFault, recordsOf } from './parse.ts';
import { excessOf } from './record-limit.ts';
import { type LinePlace, LineSplitter, type SplitLine } from './splitter.ts';

/** What one piece of a file brought. */
export interface LineBatch {
  readonly records: readonly JsonLine[];
  readonly faults: readonly LineFault[];
}

/** What a reading knows at its end. */
export interface ReadState extends LinePlace {
  /** What was read up to the last newline. */
  readonly digest: Digest;
}

/** How to read. */
export interface LineOptions {
  /** Where an earlier reading stopped. */
  readonly from?: ReadState;
  /** Refuses the file at its first bad line. */
  readonly strict?: boolean;
  readonly bytesMax?: number;
  readonly limits?: ContentLimits;
  /** Called with each piece of the content, which is good until it returns, before its records are there. */
  readonly onContent?: (piece: Uint8Array) => void;
}

/** The most bad lines before as many records: a file may have nothing else. */
const faultsMax = 100;

/** The place before the first line. */
export const beginning: ReadState = { line: 1, offset: 0, digest: { size: 0, blocks: [], tail: '' } };

/** One reading of a file, from the place at which an earlier one stopped. */
export class LineReading {
  readonly #file: OpenFile;
  readonly #options: LineOptions;
  readonly #splitter: LineSplitter;
  readonly #digest: ContentDigest;
  #unfinished: LinePlace | undefined;
  #counts = { records: 0, faults: 0, glued: 0 };

  constructor(file: OpenFile, options: LineOptions = {}) {
    const { from = beginning, bytesMax = lineBytesMax } = options;
    this.#file = file;
    this.#options = options;
    this.#splitter = new LineSplitter(from, { bytesMax });
    this.#digest = new ContentDigest(from.digest);
  }

  /** Where the next reading begins, and what it must find before that. */
  get state(): ReadState {
    return { ...this.#splitter.place, digest: this.#digest.value() };
  }

  /** The last line, if it ends inside a record: more of it may come. */
  get unfinished(): LinePlace | undefined {
    return this.#unfinished;
  }

  /** What was found, among it the lines with several records. */
  get counts(): { readonly records: number; readonly faults: number; readonly glued: number } {
    return this.#counts;
  }

  /**
   * The records, a piece of the file at a time. A last line without a newline gives its records too, and is read again by the
   * next reading.
   * @throws IMPORT_SOURCE_CHANGED when the file no longer has what the earlier reading read just before its place; what
   * `contentOf` throws, with the line; the first bad line, with `strict` or if the file has hardly any other;
   * IMPORT_TOO_LARGE for more records than a transcript of its size has
   */
  async *batches(): AsyncGenerator<LineBatch> {
    try {
      yield* this.#batches();
    } catch (error) {
      throw this.#located(error);
    }
  }

  async *#batches(): AsyncGenerator<LineBatch> {
    const { from = beginning, limits, onContent } = this.#options;
    const start = blockStart(from.offset);
    const known = from.offset - start;
    let length = 0;
    for await (const chunk of contentOf(this.#file, {
      from: start,
      ...(limits !== undefined && { limits }),
    })) {
      onContent?.(chunk);
      // What was read before is read from the beginning of its last block on, to know that it is still there.
      const again = Math.max(Math.min(known - length, chunk.length), 0);
      length += chunk.length;
      if (again > 0) {
        this.#digest.pushAll(chunk.subarray(0, again));
        if (length < known) continue;
        this.#digest.assertKnown(this.#file.path);
      }
      const batch = this.#batchOf(chunk.subarray(again));
      if (batch !== undefined) yield batch;
    }
    if (length < known) throw otherContent(this.#file.path, start + length);
    const rest = this.#splitter.rest();
    const last = rest && this.#parsed([rest]);
    if (last !== undefined) yield last;
  }

  #batchOf(chunk: Uint8Array): LineBatch | undefined {
    this.#digest.push(chunk);
    return this.#parsed(this.#splitter.push(chunk));
  }

  #parsed(lines: readonly SplitLine[]): LineBatch | undefined {
    if (lines.length === 0) return undefined;
    const records: JsonLine[] = [];
    const faults: LineFault[] = [];
    for (const line of lines) {
      const found = collecting(line.length, () => recordsOf(line, this.#file.path));
      for (const record of found.records) records.push(record);
      if (found.isUnfinished) this.#unfinished = { line: line.line, offset: line.offset };
      if (found.records.length > 1) this.#counts.glued += 1;
      this.#counts.records += found.records.length;
      this.#assertMayBe(line);
      if (found.fault === undefined) continue;
      faults.push(found.fault);
      this.#counts.faults += 1;
      if (this.#options.strict === true) throw errorOf(found.fault, this.#file.path, { strict: true });
      if (this.#counts.faults > this.#counts.records + faultsMax) throw errorOf(found.fault, this.#file.path);
    }
    return { records, faults };
  }

  /** @throws IMPORT_TOO_LARGE */
  #assertMayBe({ line, offset, length }: SplitLine): void {
    const { records } = this.#counts;
    const { from = beginning } = this.#options;
    const { path, facts } = this.#file;
    const content = offset + length + 1 - from.offset;
    const why = excessOf({ records, content, size: facts.size });
    if (why !== undefined) throw tooManyRecords(path, { line, offset, why });
  }

  /** An error of the content with the line in which its place is. */
  #located(error: unknown): unknown {
    if (!(error instanceof ImportError) || error.data.line !== undefined) return error;
    const { offset } = error.data;
    if (typeof offset !== 'number') return error;
    const { line } = this.#splitter.place;
    const message = `${error.message} (line ${line}, byte ${offset})`;
    return new ImportError(error.code, message, { data: { ...error.data, line }, cause: error });
  }
}

/** A bad line as an error. `strict`: the file is refused since it may have none, and else the line alone would be left out. */
function errorOf(
  { code, line, offset, why }: LineFault,
  file: string,
  how: { readonly strict?: true } = {},
): ImportError {
  return new ImportError(code, `cannot import ${shown(file)}: line ${line}, byte ${offset}: ${why}`, {
    data: { file, line, offset, ...how },
  });
}
