import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject, jsonDepth, quote } from '@tapedeck/tape/internal';
import { jsonDepthMax } from '@tapedeck/tape/store';
import type { ByteLine } from './byte-lines.ts';
import { ImportError } from './errors.ts';
import { objectSpans, spansMax } from './object-spans.ts';
import { excessIn, valuesMax } from './value-limit.ts';

/**
 * The longest line that is read. The longest known line of a real transcript has about a million characters.
 */
export const lineBytesMax: number = 64 * 1024 * 1024;

/** The values of a line. */
export interface ParsedLine {
  readonly values: readonly Json[];
  /** The line ends inside a record: what is wrong with it unless it is the last line. */
  readonly cut?: ImportError;
  /** NUL bytes stand before or behind its text, as a crash of the machine leaves them. */
  readonly nul?: ImportError;
}

/** A record, and how many values it has. */
interface PlainRecord {
  readonly value: JsonObject;
  readonly values: number;
}

/** The record of a line that is one record and nothing else, as nearly all are. Of any other line, `parseLine` says more. */
export function plainRecord(bytes: Uint8Array): PlainRecord | undefined {
  if (excessIn(bytes) !== undefined) return undefined;
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes));
    if (!isObject(value)) return undefined;
    const values = valuesIn(value);
    return Number.isFinite(values) ? { value, values } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Parses a line: one record, or several without newlines between them, the last possibly incomplete. Around NUL bytes, the
 * record is read.
 * @throws IMPORT_BAD_JSON
 */
export function parseLine(given: ByteLine, file: string | undefined): ParsedLine {
  const { from, to } = withoutNul(given.bytes);
  const parsed = parseText(
    { ...given, bytes: given.bytes.subarray(from, to), offset: given.offset + from },
    file,
  );
  const count = from + given.bytes.length - to;
  if (count === 0) return parsed;
  const nul = { why: `${count} NUL ${count === 1 ? 'byte' : 'bytes'}`, at: from > 0 ? 0 : to };
  return { ...parsed, nul: faultIn(given, file, nul) };
}

/** Where the text of a line is between the NUL bytes before and behind it; a line of these alone has it at its end. */
function withoutNul(bytes: Uint8Array): { readonly from: number; readonly to: number } {
  let [from, to] = [0, bytes.length];
  while (from < to && bytes[from] === 0) from += 1;
  while (to > from && bytes[to - 1] === 0) to -= 1;
  return { from, to };
}

/** What is wrong with a line at a byte of it. */
export function faultIn(
  { line, offset: start }: Pick<ByteLine, 'line' | 'offset'>,
  file: string | undefined,
  { why, at }: { readonly why: string; readonly at: number },
): ImportError {
  const offset = start + at;
  const data = { ...(file !== undefined && { file }), line, offset, why };
  const message = `cannot import ${shown(file)}: line ${line}, byte ${offset}: ${why}`;
  return new ImportError('IMPORT_BAD_JSON', message, { data });
}

/** The error of a file that has more bad lines than records, of which it names the first. */
export function mostlyBad(
  file: string | undefined,
  { line, offset, why }: { readonly line: number; readonly offset: number; readonly why: string },
  { bad, records }: { readonly bad: number; readonly records: number },
): ImportError {
  const first = `line ${line}, byte ${offset}: ${why}`;
  const all =
    records === 0 ? first : `it has more bad lines (${bad}) than records (${records}); the first is ${first}`;
  return new ImportError('IMPORT_BAD_JSON', `cannot import ${shown(file)}: ${all}`, {
    data: { ...(file !== undefined && { file }), line, offset, why },
  });
}

function parseText(line: ByteLine, file: string | undefined): ParsedLine {
  const fault = (why: string, at: number) => faultIn(line, file, { why, at });
  if (line.bytes.length > lineBytesMax) throw fault(`the line exceeds ${lineBytesMax} bytes`, 0);
  const excess = excessIn(line.bytes);
  if (excess !== undefined) throw fault(`over ${valuesMax} values`, excess);
  const { text, badByte } = decode(line.bytes);
  if (badByte !== undefined && line.ended) throw fault('not UTF-8', badByte);
  if (text.trim() === '' && badByte === undefined) return { values: [] };

  const parse = (from: number, to: number): Json | ImportError => {
    const part = text.slice(from, to);
    try {
      return JSON.parse(part) as Json;
    } catch (cause) {
      const at = from + position(cause, part);
      return fault(reasonOf(cause, text, at), Buffer.byteLength(text.slice(0, at)));
    }
  };
  // Nearly every line is one record: scan for several only if parsing one fails.
  const whole = badByte === undefined ? parse(0, text.length) : fault('not UTF-8', badByte);
  // What was parsed is looked at, which is faster than its text; what was not may be too deep to be looked at.
  const isDeep =
    whole instanceof ImportError ? jsonDepth(text) > jsonDepthMax : !Number.isFinite(valuesIn(whole));
  if (isDeep) throw fault(`nested over ${jsonDepthMax} levels`, 0);
  if (!(whole instanceof ImportError)) return { values: [whole] };
  const { spans, rest, isCut } = objectSpans(text);
  if (isCut) throw fault(`over ${spansMax} records`, Buffer.byteLength(text.slice(0, rest)));
  const tail = text.slice(rest);
  if (tail === '' && (spans.length < 2 || badByte !== undefined)) throw whole;
  const cut = tail.startsWith('{') ? parse(rest, text.length) : undefined;
  if (tail !== '' && !(cut instanceof ImportError))
    throw spans.length === 0 ? whole : fault('not a JSON object', Buffer.byteLength(text.slice(0, rest)));
  const values = spans.map(({ from, to }) => {
    const value = parse(from, to);
    if (value instanceof ImportError) throw value;
    return value;
  });
  return { values, ...(cut instanceof ImportError && { cut }) };
}

/**
 * How many values there are in one that was parsed, with itself; infinite for one that is nested deeper than a record may be.
 * Makes no object: all lines are looked at.
 */
export function valuesIn(value: Json, levels: number = jsonDepthMax): number {
  if (typeof value !== 'object' || value === null) return 1;
  if (levels === 0) return Number.POSITIVE_INFINITY;
  let count = 1;
  if (Array.isArray(value)) {
    for (const one of value) count += typeof one === 'object' ? valuesIn(one, levels - 1) : 1;
    return count;
  }
  for (const name in value) {
    const field = (value as JsonObject)[name];
    count += typeof field === 'object' ? valuesIn(field, levels - 1) : 1;
  }
  return count;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The text of a line; if it is not UTF-8, the text before the first bad byte, and the offset of that byte.
 */
function decode(bytes: Uint8Array): { text: string; badByte?: number } {
  try {
    return { text: utf8.decode(bytes) };
  } catch {
    // A lenient decoder writes U+FFFD for bad bytes, so the bytes differ from there on.
    const lenient = Buffer.from(Buffer.from(bytes).toString('utf8'));
    let badByte = 0;
    while (badByte < bytes.length && lenient[badByte] === bytes[badByte]) badByte += 1;
    return { text: Buffer.from(bytes.subarray(0, badByte)).toString('utf8'), badByte };
  }
}

/** The position at which the parser stopped, as its message gives it; 0 if it gives none. */
function position(error: unknown, text: string): number {
  const message = error instanceof Error ? error.message : '';
  if (message.startsWith('Unexpected end')) return text.length;
  return Number(/at position (\d+)/.exec(message)?.[1] ?? 0);
}

/** Why a text is not JSON. The parser quotes the text in some reasons, which may be that of any file of the user. */
function reasonOf(error: unknown, text: string, at: number): string {
  const message = error instanceof Error ? error.message : '';
  if (text[at] === '\0') return 'a NUL byte in a record';
  if (at >= text.length || message.startsWith('Unterminated string')) return endsInside;
  const [, reason] = /^([^"]*) (?:in|after) JSON at position/.exec(message) ?? [];
  if (reason === undefined) return 'not JSON';
  return `not JSON: ${reason.charAt(0).toLowerCase()}${reason.slice(1)}`;
}

/** What is wrong with a line that is not whole. */
export const endsInside = 'the line ends inside a record';

/** What is wrong with a line that has another value. */
export const noObject = 'it is JSON, but no object';

/** A file name as messages show it. */
export function shown(file: string | undefined): string {
  return file === undefined ? 'the transcript' : quote(file);
}
