import { isUtf8 } from 'node:buffer';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { quote } from './display.ts';
import { GraphError, reason, systemCode } from './errors.ts';

/** The most bytes of one line: four times what the longest record may have. A longer line is no record. */
export const lineBytesMax: number = 4 * 64 * 1024;

const chunkBytes = 64 * 1024;
const lf = 0x0a;

/** Where a line stands: its number from 1, its first byte, and the byte after its LF (or its last byte). */
interface Place {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/**
 * One line of a file, without its LF. `bad`: a line whose text cannot be had. `torn`: bytes after the last
 * LF, which a writer has not finished or never will; their text, where they have one.
 */
export type Line =
  | (Place & { readonly kind: 'line'; readonly text: string })
  | (Place & { readonly kind: 'bad'; readonly reason: 'tooLong' | 'notUtf8' })
  | (Place & { readonly kind: 'torn'; readonly text?: string });

/** A graph file that is open for reading. */
export interface OpenFile {
  readonly fd: number;
  readonly dev: number;
  readonly ino: number;
}

/**
 * Opens a graph file for reading; nothing when there is none.
 * @throws GRAPH_UNREADABLE for a directory, a symbolic link, a FIFO (without waiting for it), or no permission.
 */
export function openForReading(path: string): OpenFile | undefined {
  let fd: number;
  try {
    // NONBLOCK: opening a FIFO would wait for its writer. libuv adds CLOEXEC to every open.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw unreadable(path, cause);
  }
  const stat = fstatSync(fd);
  if (stat.isFile()) return { fd, dev: stat.dev, ino: stat.ino };
  closeSync(fd);
  throw new GraphError('GRAPH_UNREADABLE', `cannot read graph ${quote(path)}: it is not a regular file`);
}

/** A failed read as an error of ours. */
export function unreadable(path: string, cause: unknown): GraphError {
  return new GraphError('GRAPH_UNREADABLE', `cannot read graph ${quote(path)}: ${reason(cause)}`, { cause });
}

/**
 * The lines of a graph file, oldest first; none when there is no file. Only the byte 0x0A ends a line: a CR
 * is part of it (JSON takes it for space), and so are U+2028 and U+2029.
 * @throws GRAPH_UNREADABLE
 */
export function* readLines(path: string): Generator<Line, void, undefined> {
  const file = openForReading(path);
  if (file === undefined) return;
  try {
    yield* linesOf(file.fd, 0);
  } catch (cause) {
    throw cause instanceof GraphError ? cause : unreadable(path, cause);
  } finally {
    closeSync(file.fd);
  }
}

/** The lines of an open file from a byte on. Holds one chunk and one line at most, however long a line is. */
export function* linesOf(fd: number, from: number): Generator<Line, void, undefined> {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  let kept: Buffer[] = [];
  let number = 0;
  let start = from;
  let position = from;
  for (;;) {
    const chunk = buffer.subarray(0, readSync(fd, buffer, 0, chunkBytes, position));
    if (chunk.length === 0) break;
    let at = 0;
    for (let end = chunk.indexOf(lf); end !== -1; end = chunk.indexOf(lf, at)) {
      number += 1;
      const place = { number, start, end: position + end + 1 };
      yield lineOf(place, kept, chunk.subarray(at, end));
      kept = [];
      at = end + 1;
      start = place.end;
    }
    position += chunk.length;
    if (position - start > lineBytesMax) kept = [];
    else if (at < chunk.length) kept.push(Buffer.from(chunk.subarray(at)));
  }
  if (position === start) return;
  const rest = Buffer.concat(kept);
  const isText = rest.length === position - start && isUtf8(rest);
  const place = { number: number + 1, start, end: position };
  yield { kind: 'torn', ...place, ...(isText && { text: rest.toString('utf8') }) };
}

function lineOf(place: Place, kept: readonly Buffer[], rest: Buffer): Line {
  if (place.end - 1 - place.start > lineBytesMax) return { kind: 'bad', reason: 'tooLong', ...place };
  const bytes = kept.length === 0 ? rest : Buffer.concat([...kept, rest]);
  if (!isUtf8(bytes)) return { kind: 'bad', reason: 'notUtf8', ...place };
  return { kind: 'line', text: bytes.toString('utf8'), ...place };
}
