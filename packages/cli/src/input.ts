import { readFile } from 'node:fs/promises';
import { type Json, type JsonObject, type Point, TapeError } from '@tapedeck/tape';
import { isObject, parseJson } from '@tapedeck/tape/internal';
import { UsageError } from './errors/kinds.ts';
import { systemFault } from './errors/system-fault.ts';
import type { Io } from './io.ts';
import { readRelativeTime } from './terminal/time.ts';

/** The word that replaces `-` before parsing: stdin, or stdout where a verb writes. A file of that name is `@./-`. */
export const stdinWord = '@-';

/** Reads a text argument: the text itself, stdin for `-`, a file for `@FILE`, or a text with one `@` less for `@@`. */
export async function readText(argument: string, io: Io): Promise<string> {
  if (argument === stdinWord) return withoutLastLf(decode(await readAll(io.stdin), 'stdin'));
  if (!argument.startsWith('@')) return argument;
  if (argument.startsWith('@@')) return argument.slice(1);
  const file = argument.slice(1);
  try {
    return withoutLastLf(decode(await readFile(file), `'${file}'`));
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw new UsageError(`cannot read '${file}': ${systemFault(cause)}`, {
      hint: `for a text that begins with @, write @@, or give the text on stdin with -`,
    });
  }
}

/**
 * Reads a text argument that needs no quotes: one word as `readText` reads it, several joined by blanks.
 * @throws UsageError for several words where the first one alone would be stdin or a file
 */
export async function readWords(words: readonly string[], io: Io): Promise<string> {
  const [first = '', ...others] = words;
  if (others.length === 0) return await readText(first, io);
  if (!first.startsWith('@')) return joined(words);
  if (first.startsWith('@@')) return joined([first.slice(1), ...others]);
  const shown = first === stdinWord ? '-' : first;
  throw new UsageError(`cannot read '${shown}' as ${shown === '-' ? 'stdin' : 'a file'}: more words follow`, {
    hint:
      shown === '-'
        ? 'for a text that begins with a dash, quote all of it'
        : `for a text that begins with @, write @${shown}`,
  });
}

/** Words joined by blanks, as they were typed: among others, a dash is a dash. */
export function joined(words: readonly string[]): string {
  return words.map((word) => (word === stdinWord ? '-' : word)).join(' ');
}

/** Reads the JSON argument of the option `what`. */
export async function readJson(argument: string, what: string, io: Io): Promise<Json> {
  try {
    return parseJson(await readText(argument, io), what);
  } catch (error) {
    if (error instanceof TapeError) throw new UsageError(error.message);
    throw error;
  }
}

/** Reads the JSON object of `--state`; `{}` without the option. */
export async function readState(argument: string | undefined, io: Io): Promise<JsonObject> {
  if (argument === undefined) return {};
  const value = await readJson(argument, '--state', io);
  if (!isObject(value)) throw new UsageError('cannot read --state: it must be a JSON object');
  return value;
}

/** Removes the final line end, which `echo` and editors add. */
function withoutLastLf(text: string): string {
  return text.replace(/\r?\n$/, '');
}

/** All bytes of a stream. */
export async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export function decode(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw new UsageError(`cannot read ${what}: it is not UTF-8`);
  }
}

/** The lines of a stream, split on LF bytes alone: U+2028 is text. */
export async function* readLines(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ number: number; bytes: Uint8Array }> {
  let rest: Uint8Array[] = [];
  let number = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let lf = chunk.indexOf(10); lf !== -1; lf = chunk.indexOf(10, from)) {
      number += 1;
      yield { number, bytes: Buffer.concat([...rest, chunk.subarray(from, lf)]) };
      rest = [];
      from = lf + 1;
    }
    if (from < chunk.length) rest.push(chunk.subarray(from));
  }
  const last = Buffer.concat(rest);
  if (last.length > 0) yield { number: number + 1, bytes: last };
}

/** Parses a point: `42` and `@42` are positions. */
export function pointOf(text: string): Point {
  // Without its zeros, as positions are written; a number that no position can have stays as it was typed.
  return /^\d+$/.test(text) ? `@${text.replace(/^0+(?=\d)/, '')}` : text;
}

/** Parses the point of `--since`: an anchor may be written with an `@`, too. */
export function sinceOf(text: string): Point {
  return pointOf(text.replace(/^@(?!\d+$)/, ''));
}

/**
 * Parses a time: a date, or a date and a time, in the form of ISO 8601, in UTC where no offset is given; or one that
 * counts from now, as `readRelativeTime` does. Undefined for another text, and for a day that its month does not have.
 */
export function timeOf(text: string, now: number): number | undefined {
  if (!/^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?$/.test(text))
    return readRelativeTime(text, now);
  // `Date` takes 30 February for a day of March.
  const day = text.slice(0, 10);
  if (!new Date(`${day}T00:00Z`).toJSON()?.startsWith(day)) return undefined;
  const isPlaced = !text.includes('T') || /(?:Z|[+-]\d\d:\d\d)$/.test(text);
  const time = Date.parse(isPlaced ? text : `${text}Z`);
  return Number.isNaN(time) ? undefined : time;
}
