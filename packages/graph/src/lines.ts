import { isUtf8 } from 'node:buffer';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { beginsAsRecord } from './chain.ts';
import { quote } from './display.ts';
import { GraphError, reason, systemCode } from './errors.ts';

/** Maximum size of a line in bytes: four times the maximum size of a record. */
export const lineBytesMax: number = 4 * 64 * 1024;

const chunkBytes = 64 * 1024;
const lf = 0x0a;

/**
 * The place of a line: its number from 1, its first byte, and the byte after its LF (or after its last byte).
 */
interface LineSpan {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/**
 * One line of a file, without its LF. `bad`: the line is too long or not UTF-8. `torn`: the bytes after the
 * last LF, from an unfinished write, with their text if they are UTF-8. `isFragment`: it begins as what a crash may
 * leave of a record.
 */
export type Line =
  | (LineSpan & { readonly kind: 'line'; readonly text: string })
  | (LineSpan & {
      readonly kind: 'bad';
      readonly reason: 'tooLong' | 'notUtf8';
      readonly isFragment: boolean;
    })
  | (LineSpan & { readonly kind: 'torn'; readonly text?: string; readonly isFragment: boolean });

/** A graph file opened for reading. */
export interface OpenFile {
  readonly fd: number;
  readonly dev: number;
  readonly ino: number;
}

/**
 * Opens a graph file for reading; returns undefined when it does not exist.
 * @throws GRAPH_UNREADABLE for a directory, a symbolic link, a FIFO (without blocking), or no permission
 */
export function openForReading(path: string): OpenFile | undefined {
  let fd: number;
  try {
    // NONBLOCK: opening a FIFO would block until a writer opens it. libuv adds CLOEXEC to every open.
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

/** The GRAPH_UNREADABLE error of a failed read. */
export function unreadable(path: string, cause: unknown): GraphError {
  return new GraphError('GRAPH_UNREADABLE', `cannot read graph ${quote(path)}: ${reason(cause)}`, { cause });
}

/**
 * The lines of a graph file, oldest first; none when it does not exist. Only the byte 0x0A ends a line: CR
 * (white space in JSON), U+2028 and U+2029 are part of it.
 * @throws GRAPH_UNREADABLE
 *
 * @example
 * ```ts
 * import { readLines } from '@tapedeck/graph';
 * import { openJournal } from '@tapedeck/graph/journal';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore('.tape/tape.db', { journal: openJournal('.tape/session_graph.jsonl') });
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * for (const line of readLines('.tape/session_graph.jsonl')) console.log(line.kind);
 * // line
 * // line
 * ```
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

/** The lines of an open file from a byte on. Memory: one chunk, and at most `lineBytesMax` of a line. */
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
    // The first two pieces have the beginning of a line that is too long.
    if (position - start > lineBytesMax) kept = kept.slice(0, 2);
    else if (at < chunk.length) kept.push(Buffer.from(chunk.subarray(at)));
  }
  if (position === start) return;
  const rest = Buffer.concat(kept);
  const isText = rest.length === position - start && isUtf8(rest);
  const place = { number: number + 1, start, end: position };
  yield {
    kind: 'torn',
    ...place,
    isFragment: beginsAsRecord(rest),
    ...(isText && { text: rest.toString('utf8') }),
  };
}

function lineOf(place: LineSpan, kept: readonly Buffer[], rest: Buffer): Line {
  const bytes = kept.length === 0 ? rest : Buffer.concat([...kept, rest]);
  const isFragment = beginsAsRecord(bytes);
  if (place.end - 1 - place.start > lineBytesMax)
    return { kind: 'bad', reason: 'tooLong', isFragment, ...place };
  if (!isUtf8(bytes)) return { kind: 'bad', reason: 'notUtf8', isFragment, ...place };
  return { kind: 'line', text: bytes.toString('utf8'), ...place };
}
