import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { readSync } from 'node:fs';
import { bodyText } from '../entry/hash.ts';
import { isObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import { type BundleBytes, type BundleEntry, badBundle, lineBytesMax } from './bundle.ts';
import { type Checked, checkBytes, checkEntry } from './check.ts';
import type { Quarantine } from './unpack.ts';

const chunkBytes = 256 * 1024;
const lf = 0x0a;

/** Where a line is: its number from 1, and its first byte. */
export interface Place {
  readonly number: number;
  readonly offset: number;
}

/** A line. Most of them are only digested and counted on the first reading, which needs no text. */
export class BundleLine implements Place {
  readonly number: number;
  readonly offset: number;
  /** With the LF. The next line may be read into the same memory. */
  readonly bytes: Buffer;

  constructor({ number, offset }: Place, bytes: Buffer) {
    this.number = number;
    this.offset = offset;
    this.bytes = bytes;
  }

  get text(): string {
    return this.bytes.toString('utf8', 0, this.bytes.length - 1);
  }

  /** The field of its record, if it is written as this program does it: `e`, or nothing. */
  get field(): string | undefined {
    if (this.bytes[0] !== openBrace || this.bytes[1] !== quotes) return undefined;
    const end = this.bytes.subarray(0, fieldEnd).indexOf(quotes, 2);
    return end === -1 || this.bytes[end + 1] !== colon ? undefined : this.bytes.toString('latin1', 2, end);
  }
}

const [openBrace, openBracket, quotes, colon, comma, backslash] = [0x7b, 0x5b, 0x22, 0x3a, 0x2c, 0x5c];
/** No field of a record has more bytes, with what is before and behind it. */
const fieldEnd = 12;

/**
 * Reads the lines of a bundle from a place on: a chunk, and one line, are in memory.
 * @throws TAPE_BAD_BUNDLE at a line that is too long, is no UTF-8, or has no end
 */
export function* linesFrom({ fd, name }: Quarantine, from: Place): Generator<BundleLine> {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  let kept: Buffer[] = [];
  let { number, offset } = from;
  for (let position = from.offset; ; ) {
    const chunk = buffer.subarray(0, readChunk({ fd, name }, buffer, position));
    if (chunk.length === 0) break;
    let at = 0;
    for (let end = chunk.indexOf(lf); end !== -1; end = chunk.indexOf(lf, at)) {
      const rest = chunk.subarray(at, end + 1);
      const bytes = kept.length === 0 ? rest : Buffer.concat([...kept, rest]);
      kept = [];
      if (bytes.length > lineBytesMax + 1)
        throw badBundle(name, number, `the line has over ${lineBytesMax} bytes`);
      if (!isUtf8(bytes)) throw badBundle(name, number, 'the line is not UTF-8');
      yield new BundleLine({ number, offset }, bytes);
      number += 1;
      at = end + 1;
      offset = position + at;
    }
    position += chunk.length;
    if (position - offset > lineBytesMax)
      throw badBundle(name, number, `the line has over ${lineBytesMax} bytes`);
    if (at < chunk.length) kept.push(Buffer.from(chunk.subarray(at)));
  }
  if (kept.length > 0) throw badBundle(name, number, 'the line has no end: the file was cut off');
}

function readChunk({ fd, name }: Pick<Quarantine, 'fd' | 'name'>, buffer: Buffer, position: number): number {
  try {
    return readSync(fd, buffer, 0, buffer.length, position);
  } catch (cause) {
    throw new TapeError('TAPE_IO', `cannot read '${name}': ${(cause as Error).message}`, {
      data: { file: name },
      cause,
    });
  }
}

/** Parses a line to an object with one field. */
export function recordOf({ name }: Quarantine, { number, text }: BundleLine): readonly [string, unknown] {
  if (text.length > smallChars && hasManyParts(text))
    throw badBundle(name, number, 'the line has more parts than any record');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw badBundle(name, number, 'the line is not JSON', { cause });
  }
  const fields = isObject(value) ? Object.entries(value) : [];
  const [field] = fields;
  if (field === undefined || fields.length > 1)
    throw badBundle(name, number, 'the line is no record of a bundle');
  return field;
}

/** Up to this length no line takes much memory, whatever it has. */
const smallChars = 64 * 1024;
/** More than the fields of a session, and the lists and objects around them. */
const partsMax = 64;

/**
 * Whether a line has more values outside of its strings than a record: millions of empty lists would take thirty times
 * the memory of their text.
 */
function hasManyParts(text: string): boolean {
  let parts = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === backslash) i += 1;
      else if (c === quotes) inString = false;
    } else if (c === quotes) inString = true;
    else if (c === comma || c === openBracket || c === openBrace) {
      parts += 1;
      if (parts > partsMax) return true;
    }
  }
  return false;
}

/** Unwraps what a check returned. */
export function checkedValue<T>({ name }: Quarantine, { number }: Place, checked: Checked<T>): T {
  if (checked.fault !== undefined) throw badBundle(name, number, checked.fault);
  return checked.value;
}

/** An entry as it stands in a bundle, with the bytes before it. */
export interface Bundled {
  readonly entry: BundleEntry;
  /** The line of the entry. */
  readonly at: Place;
  /** The first line that belongs to it: that of the first bytes, if it has some. */
  readonly from: Place;
  /** The pieces before it, to be read when they are needed. */
  readonly bytes: readonly Place[];
}

/**
 * Reads the entries of one session, which must count on from a position. The bytes before an entry are passed over.
 * @param from the line behind the one that names the session, or that of a later entry
 */
export function* entriesFrom(
  file: Quarantine,
  { from, after }: { readonly from: Place; readonly after: number },
): Generator<Bundled> {
  let seq = after;
  let bytes: Place[] = [];
  for (const line of linesFrom(file, from)) {
    if (line.field === 'of' || line.field === 'end') break;
    if (line.field === 'b') {
      bytes.push({ number: line.number, offset: line.offset });
      continue;
    }
    const [field, value] = recordOf(file, line);
    if (field !== 'e')
      throw badBundle(file.name, line.number, `a record '${field.slice(0, 40)}' is not of a session`);
    const entry = checkedValue(file, line, checkEntry(value, bodyHex));
    seq += 1;
    if (entry.seq !== seq) throw badBundle(file.name, line.number, `position ${seq} is missing`);
    const at = { number: line.number, offset: line.offset };
    yield { entry, at, from: bytes[0] ?? at, bytes };
    bytes = [];
  }
  if (bytes[0] !== undefined) throw badBundle(file.name, bytes[0].number, 'no entry needs the bytes');
}

function bodyHex(salt: string, payload: string, meta: string | null): string {
  return hash('sha256', bodyText(salt, payload, meta));
}

/**
 * Puts the bytes before an entry together from their pieces.
 * @throws TAPE_BAD_BUNDLE when pieces are missing, or the bytes have another hash
 */
export function* bytesBefore(
  file: Quarantine,
  { bytes }: Bundled,
): Generator<{ readonly hash: string; readonly bytes: Uint8Array; readonly at: Place }> {
  let open: { readonly of: BundleBytes; readonly whole: Buffer; filled: number } | undefined;
  for (const place of bytes) {
    const [line] = linesFrom(file, place);
    if (line === undefined) throw badBundle(file.name, place.number, 'the bytes are gone');
    const [, value] = recordOf(file, line);
    const piece = checkedValue(file, line, checkBytes(value));
    open ??= { of: piece, whole: Buffer.alloc(piece.size), filled: 0 };
    if (piece.hash !== open.of.hash || piece.size !== open.of.size || piece.from !== open.filled)
      throw badBundle(file.name, place.number, 'a piece of the bytes is missing');
    const part = Buffer.from(piece.bytes, 'base64');
    if (open.filled + part.length > piece.size || (part.length === 0 && piece.size > 0))
      throw badBundle(file.name, place.number, 'the bytes have another size');
    part.copy(open.whole, open.filled);
    open.filled += part.length;
    if (open.filled < piece.size) continue;
    if (hash('sha256', open.whole) !== piece.hash)
      throw badBundle(file.name, place.number, 'the bytes do not have their hash');
    yield { hash: piece.hash, bytes: open.whole, at: place };
    open = undefined;
  }
  if (open !== undefined) throw badBundle(file.name, bytes.at(-1)?.number ?? null, 'the bytes are not whole');
}
