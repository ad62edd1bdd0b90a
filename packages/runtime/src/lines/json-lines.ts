import { closeSync, openSync, readSync } from 'node:fs';
import type { JsonObject } from '@tapedeck/tape';
import { isObject, quote } from '@tapedeck/tape/internal';
import { type ByteLine, byteLines } from './byte-lines.ts';
import { ImportError } from './errors.ts';
import {
  endsInside,
  faultIn,
  lineBytesMax,
  mostlyBad,
  noObject,
  type ParsedLine,
  parseLine,
  shown,
  valuesIn,
} from './json-line.ts';
import { excessOf } from './record-limit.ts';

/** One record of a JSON-lines file. */
export interface JsonLine {
  /** Its line: 1, 2, 3 …; records glued together share one. */
  readonly line: number;
  /** Bytes of the file before the line. */
  readonly offset: number;
  /** Length of the line in bytes. */
  readonly bytes: number;
  readonly value: JsonObject;
  /** How many values it has, where that was counted. */
  readonly values?: number;
  /** Whether there was no room for the value: its line is then read again for each use of it. */
  readonly isAway?: boolean;
  /** Of a record that a format found in another one, what that says of it. */
  readonly around?: JsonObject;
}

/**
 * Records in their order: an array, or, of a large file, what makes each record when a caller takes it. `[...records]` is an
 * array of all.
 */
export interface RecordList extends Iterable<JsonLine> {
  readonly length: number;
  at(i: number): JsonLine | undefined;
  values(): IteratorObject<JsonLine, undefined>;
}

/** The records of a JSON-lines file, and its irregularities. */
export interface JsonLines<Records extends RecordList = readonly JsonLine[]> {
  readonly records: Records;
  /** Lines that contain several records without a newline between them. */
  readonly glued: number;
  /** 1 if the last line ends inside a record, which is left out: normal for a live transcript. */
  readonly truncated: number;
  /** Lines that are not JSON, or JSON that is not an object. */
  readonly skipped: number;
  /** The places of those, and of a last line that ends inside a record: the first 100 of them. */
  readonly bad: readonly BadLine[];
}

/** A line that is left out, or all but its records, which stand beside NUL bytes or before what is wrong. */
export interface BadLine {
  readonly line: number;
  /** Bytes of the file before the fault. */
  readonly offset: number;
  /** What is wrong, in words that say nothing of what the line has. */
  readonly why: string;
}

/** How lines are read. */
export interface LineOptions {
  /** Only used in messages. */
  readonly file?: string | undefined;
  /** Whether a file that has no whole record yet is no fault. */
  readonly growing?: boolean | undefined;
  /** Whether one bad line makes the file bad. */
  readonly strict?: boolean | undefined;
}

/** The most places that are kept, and the most bad lines before as many records: a file may have nothing else. */
export const placesMax = 100;

/**
 * Reads a JSON-lines file in chunks.
 * @throws IMPORT_CANNOT_READ, and what {@link parseJsonLines} throws
 */
export function readJsonLines(file: string, { growing }: Pick<LineOptions, 'growing'> = {}): JsonLines {
  return parseJsonLines(chunksOf(file), { file, growing });
}

/**
 * Parses the bytes of a JSON-lines file. `file` is only used in messages. Leaves out a line that is not JSON, is not UTF-8,
 * is nested too deep, or has too many values, as a crash or a bad disk leaves it.
 * @throws IMPORT_EMPTY when the file has no record; IMPORT_BAD_JSON, with `line` and byte `offset`, for a line that is too
 * long, and for a file with more bad lines than records, which is another kind of file; IMPORT_TOO_LARGE for one of so many
 * records that say so little as no transcript has
 */
export function parseJsonLines(
  chunks: Iterable<Uint8Array>,
  { file, growing = false, strict = false }: LineOptions = {},
): JsonLines {
  const records: JsonLine[] = [];
  const bad: BadLine[] = [];
  let [glued, notObjects, badCount] = [0, 0, 0];
  let first: ImportError | undefined;
  let cut: { readonly fault: ImportError; readonly line: ByteLine } | undefined;
  const ofAnotherKind = ({ data: { line, offset, why } }: ImportError): ImportError =>
    mostlyBad(
      file,
      { line: Number(line), offset: Number(offset), why: String(why) },
      { bad: badCount, records: records.length },
    );
  const list = ({ data }: ImportError): void => {
    const { line, offset, why } = data;
    if (bad.length < placesMax) bad.push({ line: Number(line), offset: Number(offset), why: String(why) });
  };
  const leaveOut = (fault: ImportError): void => {
    first ??= fault;
    badCount += 1;
    if (strict) throw asStrict(first);
    if (badCount > records.length + placesMax) throw ofAnotherKind(first);
    list(fault);
  };
  for (const line of byteLines(chunks, { bytesMax: lineBytesMax })) {
    const { offset, bytes } = line;
    const why = excessOf({ records: records.length + notObjects, content: offset + bytes.length });
    if (why !== undefined) throw tooManyRecords(file, { ...line, why });
    if (cut !== undefined && !isBlank(line.bytes)) {
      leaveOut(cut.fault);
      cut = undefined;
    }
    const parsed = parsedOrFault(line, file);
    if (parsed instanceof ImportError) {
      leaveOut(parsed);
      continue;
    }
    cut ??= parsed.cut && { fault: parsed.cut, line };
    if (parsed.values.length > 1) glued += 1;
    for (const value of parsed.values) {
      if (isObject(value)) {
        const { line: at, offset, bytes } = line;
        records.push({ line: at, offset, bytes: bytes.length, value, values: valuesIn(value) });
        continue;
      }
      const fault = faultIn(line, file, { why: noObject, at: 0 });
      if (strict) throw asStrict(fault);
      notObjects += 1;
      list(fault);
    }
    if (parsed.nul !== undefined && parsed.cut === undefined) leaveOut(parsed.nul);
  }
  const fault = first ?? (records.length === 0 && !growing ? cut?.fault : undefined);
  if (fault !== undefined && (badCount > records.length || records.length === 0)) throw ofAnotherKind(fault);
  if (records.length + notObjects === 0 && !growing)
    throw new ImportError('IMPORT_EMPTY', `cannot import ${shown(file)}: it has no records`, {
      data: { ...(file !== undefined && { file }) },
    });
  if (cut !== undefined) list(faultIn(cut.line, file, { why: endsInside, at: 0 }));
  const skipped = notObjects + badCount;
  return { records, glued, truncated: cut === undefined ? 0 : 1, skipped, bad };
}

/**
 * The values of a line, or what is wrong with it.
 * @throws IMPORT_BAD_JSON for a line that is too long: where it ends is not known
 */
function parsedOrFault(line: ByteLine, file: string | undefined): ParsedLine | ImportError {
  try {
    return parseLine(line, file);
  } catch (error) {
    if (!(error instanceof ImportError) || line.bytes.length > lineBytesMax) throw error;
    return error;
  }
}

/** The error of a file that may have no bad line, and of which that alone would be left out. */
function asStrict(cause: ImportError): ImportError {
  return new ImportError(cause.code, cause.message, { data: { ...cause.data, strict: true }, cause });
}

/** The error of a file that has more records than any transcript. */
export function tooManyRecords(
  file: string | undefined,
  { line, offset, why }: { readonly line: number; readonly offset: number; readonly why: string },
): ImportError {
  return new ImportError(
    'IMPORT_TOO_LARGE',
    `cannot import ${shown(file)}: line ${line}, byte ${offset}: ${why}`,
    { data: { ...(file !== undefined && { file }), line, offset, why } },
  );
}

/** Whether a line has only white space, which is found faster than by parsing it. */
export function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

/**
 * The bytes of a file.
 * @throws IMPORT_CANNOT_READ
 */
export function* chunksOf(file: string): Generator<Uint8Array> {
  let fd: number | undefined;
  try {
    fd = openSync(file, 'r');
    for (;;) {
      // A new buffer for each chunk, since lines keep views of it until they are complete.
      const chunk = Buffer.allocUnsafe(256 * 1024);
      const length = readSync(fd, chunk);
      if (length === 0) return;
      yield chunk.subarray(0, length);
    }
  } catch (cause) {
    throw new ImportError('IMPORT_CANNOT_READ', `cannot read ${quote(file)}: ${(cause as Error).message}`, {
      data: { file },
      cause,
    });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
