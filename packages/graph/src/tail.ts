import { isUtf8 } from 'node:buffer';
import { closeSync, fstatSync, readSync } from 'node:fs';
import { beginsAsRecord, firstPrev, type Link, lineHash, readLink, startBytes } from './chain.ts';
import { lineBytesMax, openForReading, unreadable } from './lines.ts';

/** The end of a graph file: number and hash of its last record, and whether bytes follow its last LF. */
export interface Tail {
  readonly g: number;
  readonly hash: string;
  readonly torn: boolean;
}

const blockBytes = 64 * 1024;
const lf = 0x0a;

/**
 * Finds the tail of a file, reading backwards, at most to the last two records. Skips sealed fragments. A
 * record that lacks only its LF counts, and is torn: the LF that seals it completes it, so writing the record
 * again would duplicate it. A record that does not follow the one before it, such as a copied old line, gets
 * a hash that no store has recorded, so that no store appends after it. So does a file that has, after its last
 * record, a line that is no fragment: other text than the beginning of a record, or other JSON.
 */
export function findTail(fd: number, size: number): Tail {
  let torn = false;
  let last: Link | undefined;
  let isForeign = false;
  for (const { start, end } of spansFromEnd(fd, size)) {
    const isRest = end === size && start < end;
    if (isRest) torn = true;
    const text = textOf(fd, start, end);
    // JSON allows trailing white space, which the store does not write: such a line is not a record of the
    // store.
    const linked = text === undefined || (isRest && !text.endsWith('}')) ? undefined : readLink(text);
    if (linked?.kind !== 'record') {
      if (last === undefined) isForeign ||= linked?.kind === 'other' || !mayBeRecord(fd, { start, end });
      continue;
    }
    if (last !== undefined) {
      const follows = last.prev === linked.link.hash;
      return { g: last.g, hash: follows ? last.hash : lineHash(linked.link.hash + last.hash), torn };
    }
    last = linked.link;
    if (isForeign) break;
  }
  const { g, hash } = last ?? { g: 0, hash: firstPrev };
  return { g, hash: isForeign ? lineHash(hash) : hash, torn };
}

/**
 * The tail of a graph file, as its journal would read it, without opening it for writing. A missing file has the tail
 * of an empty one.
 * @throws GRAPH_UNREADABLE
 *
 * @example
 * ```ts
 * import { tailOf } from '@tapedeck/graph/journal';
 *
 * console.log(tailOf('session_graph.jsonl').g); // 0
 * ```
 */
export function tailOf(path: string): Tail {
  const file = openForReading(path);
  if (file === undefined) return { g: 0, hash: firstPrev, torn: false };
  try {
    return findTail(file.fd, fstatSync(file.fd).size);
  } catch (cause) {
    throw unreadable(path, cause);
  } finally {
    closeSync(file.fd);
  }
}

/** Whether a line without a record can be what a crash left of one. */
function mayBeRecord(fd: number, { start, end }: Span): boolean {
  return beginsAsRecord(fill(fd, Buffer.allocUnsafe(Math.min(end - start, startBytes)), start));
}

/** The place of a line without its LF. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * The byte ranges of the lines without their LFs, last line first, beginning with the bytes after the last
 * LF.
 */
function* spansFromEnd(fd: number, size: number): Generator<Span, void, undefined> {
  const buffer = Buffer.allocUnsafe(Math.min(blockBytes, size));
  let end = size;
  for (let high = size; high > 0; ) {
    const low = Math.max(0, high - blockBytes);
    const block = fill(fd, buffer.subarray(0, high - low), low);
    for (let at = block.lastIndexOf(lf); at !== -1; at = at === 0 ? -1 : block.lastIndexOf(lf, at - 1)) {
      yield { start: low + at + 1, end };
      end = low + at;
    }
    high = low;
  }
  yield { start: 0, end };
}

function textOf(fd: number, start: number, end: number): string | undefined {
  if (end === start || end - start > lineBytesMax) return undefined;
  const bytes = fill(fd, Buffer.allocUnsafe(end - start), start);
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

function fill(fd: number, into: Buffer, position: number): Buffer {
  let got = 0;
  while (got < into.length) {
    const n = readSync(fd, into, got, into.length - got, position + got);
    if (n === 0) break; // the file became shorter
    got += n;
  }
  return into.subarray(0, got);
}
