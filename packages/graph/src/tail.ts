import { isUtf8 } from 'node:buffer';
import { readSync } from 'node:fs';
import { firstPrev, type Link, lineHash, readLink } from './chain.ts';
import { lineBytesMax } from './lines.ts';

/** Where a graph file ends: its last record's number and hash, and whether a fragment follows its last LF. */
export interface Tail {
  readonly g: number;
  readonly hash: string;
  readonly torn: boolean;
}

const blockBytes = 64 * 1024;
const lf = 0x0a;

/**
 * Finds the end of a file, reading backwards and no further than the last two records. Fragments that were sealed
 * after a crash are passed over. A record that lacks only its LF counts, and is torn: the LF that seals it
 * completes it, so writing it again would make two. A record that does not follow from the one before it, an old line
 * put at the end say, gets a hash that no store has recorded: its place is not one to go on from.
 */
export function findTail(fd: number, size: number): Tail {
  let torn = false;
  let last: Link | undefined;
  for (const { start, end } of spansFromEnd(fd, size)) {
    const isFragment = end === size && start < end;
    if (isFragment) torn = true;
    const text = textOf(fd, start, end);
    // JSON takes space after a record that its writer did not put there: then it is not what the store recorded.
    if (isFragment && text?.endsWith('}') !== true) continue;
    const linked = text === undefined ? undefined : readLink(text);
    if (linked?.kind !== 'record') continue;
    if (last !== undefined) {
      const follows = last.prev === linked.link.hash;
      return { g: last.g, hash: follows ? last.hash : lineHash(linked.link.hash + last.hash), torn };
    }
    last = linked.link;
  }
  return last === undefined ? { g: 0, hash: firstPrev, torn } : { g: last.g, hash: last.hash, torn };
}

/** The lines' bytes without their LFs, last line first; what follows the last LF comes first of all. */
function* spansFromEnd(fd: number, size: number): Generator<{ start: number; end: number }, void, undefined> {
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
    if (n === 0) break; // the file became shorter: what is there is what can be read
    got += n;
  }
  return into.subarray(0, got);
}
