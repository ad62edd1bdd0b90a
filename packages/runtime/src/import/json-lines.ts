import { closeSync, openSync, readSync } from 'node:fs';
import type { JsonObject } from '@tapedeck/tape';
import { isObject, quote } from '@tapedeck/tape/internal';
import { byteLines } from './byte-lines.ts';
import { ImportError } from './errors.ts';
import { lineBytesMax, parseLine, shown } from './json-line.ts';

/** One record of a JSON-lines file. */
export interface JsonLine {
  /** Its line: 1, 2, 3 …; records glued together share one. */
  readonly line: number;
  /** Bytes of the file before the line. */
  readonly offset: number;
  /** Length of the line in bytes. */
  readonly bytes: number;
  readonly value: JsonObject;
}

/** The records of a JSON-lines file, and its irregularities. */
export interface JsonLines {
  readonly records: readonly JsonLine[];
  /** Lines that contain several records without a newline between them. */
  readonly glued: number;
  /** 1 if the last line ends inside a record, which is left out: normal for a live transcript. */
  readonly truncated: number;
  /** Lines whose JSON is not an object. */
  readonly skipped: number;
}

/**
 * Reads a JSON-lines file in chunks.
 * @throws IMPORT_CANNOT_READ, and what {@link parseJsonLines} throws
 */
export function readJsonLines(file: string): JsonLines {
  return parseJsonLines(chunksOf(file), { file });
}

/**
 * Parses the bytes of a JSON-lines file. `file` is only used in messages.
 * @throws IMPORT_EMPTY when the file has no record; IMPORT_BAD_JSON, with `line` and byte `offset`, for bytes
 * that are not UTF-8 and for a line that is not JSON, is too long, or is nested too deep
 */
export function parseJsonLines(
  chunks: Iterable<Uint8Array>,
  { file }: { file?: string | undefined } = {},
): JsonLines {
  const records: JsonLine[] = [];
  let [glued, skipped] = [0, 0];
  let cut: ImportError | undefined;
  for (const line of byteLines(chunks, { bytesMax: lineBytesMax })) {
    if (cut !== undefined && !isBlank(line.bytes)) throw cut;
    const parsed = parseLine(line, file);
    cut ??= parsed.cut;
    if (parsed.values.length > 1) glued += 1;
    for (const value of parsed.values) {
      if (isObject(value))
        records.push({ line: line.line, offset: line.offset, bytes: line.bytes.length, value });
      else skipped += 1;
    }
  }
  if (records.length + skipped === 0 && cut !== undefined) throw cut;
  if (records.length + skipped === 0)
    throw new ImportError('IMPORT_EMPTY', `cannot import ${shown(file)}: it has no records`, {
      data: { ...(file !== undefined && { file }) },
    });
  return { records, glued, truncated: cut === undefined ? 0 : 1, skipped };
}

function isBlank(bytes: Uint8Array): boolean {
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
