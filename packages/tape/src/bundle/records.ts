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

/** A line, with its number from 1 and its first byte. */
export interface BundleLine {
  readonly number: number;
  readonly offset: number;
  readonly text: string;
}

/** Where to begin to read. */
export type Place = Pick<BundleLine, 'number' | 'offset'>;

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
      const rest = chunk.subarray(at, end);
      const bytes = kept.length === 0 ? rest : Buffer.concat([...kept, rest]);
      kept = [];
      if (bytes.length > lineBytesMax)
        throw badBundle(name, number, `the line has over ${lineBytesMax} bytes`);
      if (!isUtf8(bytes)) throw badBundle(name, number, 'the line is not UTF-8');
      yield { number, offset, text: bytes.toString('utf8') };
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
    if (line.text.startsWith('{"of":') || line.text.startsWith('{"end":')) break;
    if (line.text.startsWith('{"b":')) {
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
