import { hash } from 'node:crypto';

/**
 * The hash chain of `session_graph.jsonl`: `prev` of a line is the hash of the line before, and `g` counts 1,
 * 2, 3 … Repeats the definition of the store, so that a graph file can be read without it.
 */

/** `prev` of the first line. */
export const firstPrev: string = '0'.repeat(64);

/**
 * The `prev` of the next line: SHA-256 of the line without its LF, in lower-case hex.
 *
 * @example
 * ```ts
 * import { firstPrev, lineHash, parseRecord, readLines } from '@tapedeck/graph';
 * import { openJournal } from '@tapedeck/graph/journal';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore('.tape/tape.db', { journal: openJournal('.tape/session_graph.jsonl') });
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * let prev = firstPrev;
 * for (const line of readLines('.tape/session_graph.jsonl')) {
 *   if (line.kind !== 'line') continue;
 *   const parsed = parseRecord(line.text);
 *   console.log(parsed.kind === 'record' && parsed.record.prev === prev);
 *   // true
 *   // true
 *   prev = lineHash(line.text);
 * }
 * ```
 */
export function lineHash(line: string): string {
  return hash('sha256', line);
}

/** A record's place in the chain. */
export interface Link {
  readonly g: number;
  readonly prev: string | undefined;
  readonly hash: string;
}

/** A line in the chain: the link of a record, other JSON, or no JSON at all (a fragment). */
export type Linked =
  | { readonly kind: 'record'; readonly link: Link }
  | { readonly kind: 'other' }
  | { readonly kind: 'fragment' };

/**
 * Reads the place of a line in the chain, and no other field, so that it accepts records of unknown types.
 */
export function readLink(line: string): Linked {
  let value: unknown;
  try {
    value = JSON.parse(withoutBom(line));
  } catch {
    return { kind: 'fragment' };
  }
  if (typeof value !== 'object' || value === null || !('g' in value)) return { kind: 'other' };
  const { g } = value;
  if (typeof g !== 'number' || !Number.isSafeInteger(g) || g < 1) return { kind: 'other' };
  const prev = 'prev' in value && typeof value.prev === 'string' ? value.prev : undefined;
  return { kind: 'record', link: { g, prev, hash: lineHash(line) } };
}

/**
 * Removes a byte order mark, which the journal never writes but an editor may add. The journal then sees the
 * record and stops, instead of writing it again; the hash of the line is wrong, and the check reports it.
 */
export function withoutBom(line: string): string {
  return line.charCodeAt(0) === 0xfeff ? line.slice(1) : line;
}

/** How every record begins; a crash can leave less of it, and after a power loss NULs in its place. */
const recordStart = Buffer.from('{"v":1,"g":');

/** How many bytes of a line `beginsAsRecord` needs. */
export const startBytes: number = recordStart.length;

/**
 * Whether a line that is no record can be what a crash left of one: it is empty, begins with NUL, or begins as every
 * record does. Anything else was written by another program.
 */
export function beginsAsRecord(bytes: Uint8Array): boolean {
  const start = bytes.subarray(0, startBytes);
  return start[0] === 0 || recordStart.subarray(0, start.length).equals(start);
}
