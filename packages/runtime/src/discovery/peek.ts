import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { archiveOf, cannotRead, contentOf, type LineFault, openFile, type Packed } from '../lines/index.ts';
import { recordsOf } from '../lines/parse.ts';
import { LineSplitter } from '../lines/splitter.ts';
import { beginOfRecord, LineOutline } from './line-outline.ts';

/**
 * The bytes within which a file says what it is, without lines that are longer, the lines, some of which have no record, the records
 * and their values.
 */
const peekBytes = 16 * 1024 * 1024;
const peekLines = 10_000;
const peekRecords = 200;
const peekValues = 100_000;

/** The bytes of a file that are read at most where it has longer lines: these are passed over, and not kept. */
const passedBytes = 256 * 1024 * 1024;

/** The beginning of a file. */
export interface Head {
  /** Its first records, as many as are whole within the first bytes. */
  readonly records: readonly JsonObject[];
  readonly isEmpty: boolean;
  /** What is wrong with the first line, where no line is a record. */
  readonly fault?: LineFault;
}

/**
 * Reads the beginning of a file, decompressed, until `isEnough`.
 * @throws IMPORT_CANNOT_READ
 */
export async function peek(
  path: string,
  isEnough: (records: readonly JsonObject[]) => boolean,
): Promise<Head> {
  const file = openFile(path);
  try {
    return await peekInto(file, isEnough);
  } finally {
    file.close();
  }
}

/**
 * Reads the beginning of an open file, or of bytes, decompressed, until `isEnough`.
 * @throws IMPORT_CANNOT_READ, also for an archive: what is in it would be read as damaged lines
 */
export async function peekInto(
  file: Packed,
  isEnough: (records: readonly JsonObject[]) => boolean,
): Promise<Head> {
  const { path } = file;
  const records: JsonObject[] = [];
  const splitter = new LineSplitter({ line: 1, offset: 0 }, { bytesMax: peekBytes });
  let [size, lines, count, passed] = [0, 0, 0, 0];
  let begin = '';
  let fault: LineFault | undefined;
  let outline: LineOutline | undefined;
  for await (const chunk of contentOf(file)) {
    const archive = size === 0 ? archiveOf(chunk) : undefined;
    if (archive !== undefined) throw cannotRead(path, `it is ${archive}, which is not read: unpack it first`);
    if (size === 0) begin = Buffer.from(chunk.subarray(0, 4096)).toString('utf8');
    // Nearly every first line is shorter.
    if (size === 0 && !chunk.includes(0x0a, beginOfRecord(chunk))) outline = new LineOutline();
    size += chunk.length;
    outline?.push(chunk);
    const given = splitter.push(chunk);
    lines += given.length;
    // Of a value over many lines, none is a record.
    const isSpread = size === chunk.length && /^\s*[{[]\s*\n/.test(begin);
    for (const line of given.slice(0, isSpread ? 1 : peekLines)) {
      if (line.isTooLong) passed += line.length;
      if (line.isTooLong && records.length === 0) records.push(...(outline?.records() ?? []));
      const found = recordsOf(line, path);
      for (const { value, values = 0 } of found.records) {
        records.push(value);
        count += values;
      }
      fault ??= found.fault;
    }
    const isLong = splitter.place.offset - passed > peekBytes || size > passedBytes;
    const isOver = isSpread || records.length > peekRecords || isLong || lines > peekLines;
    if (isOver || count > peekValues || isEnough(records)) break;
  }
  const rest = splitter.rest();
  if (records.length === 0 && rest?.isTooLong === true) records.push(...(outline?.records() ?? []));
  else if (records.length === 0 && rest !== undefined)
    records.push(...recordsOf(rest, path).records.map(({ value }) => value));
  if (records.length === 0) records.push(...fieldsIn(begin));
  // A line end alone is no content, either.
  const isEmpty = size <= begin.length && begin.trim() === '';
  return records.length === 0 && fault !== undefined ? { records, isEmpty, fault } : { records, isEmpty };
}

/** The texts and lists at the beginning of a file that is one object over many lines, as if they were its first record. */
function fieldsIn(begin: string): readonly JsonObject[] {
  if (!/^\s*\{\s*"/.test(begin)) return [];
  const fields = [...begin.matchAll(/^ {0,4}"(\w+)"\s*:\s*("(?:[^"\\\p{Cc}]|\\.)*"|\[)/gmu)].map(
    ([, name = '', value = '']) => [name, value === '[' ? [] : textIn(value)],
  );
  const record: unknown = Object.fromEntries(fields);
  return isObject(record) ? [record] : [];
}

/** The text of a literal; the literal itself where it has an escape that JSON does not know. */
function textIn(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return literal;
  }
}
