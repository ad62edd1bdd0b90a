import { hash } from 'node:crypto';

/**
 * The chain of `session_graph.jsonl`, told again here so that a graph file can be read where the store is
 * not: each line's `prev` is the hash of the line before, and `g` counts 1, 2, 3 …
 */

/** `prev` of the first line. */
export const firstPrev: string = '0'.repeat(64);

/** What the next line's `prev` holds: the hash of the line without its LF, in lower-case hex. */
export function lineHash(line: string): string {
  return hash('sha256', line);
}

/** A record's place in the chain. */
export interface Link {
  readonly g: number;
  readonly prev: string | undefined;
  readonly hash: string;
}

/** What a line is to the chain: a record's link, some other JSON, or no JSON at all (a fragment). */
export type Linked =
  | { readonly kind: 'record'; readonly link: Link }
  | { readonly kind: 'other' }
  | { readonly kind: 'fragment' };

/** Reads a line's place in the chain, and nothing else of it: types that are not known yet have one too. */
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
 * We never write a byte order mark. One that an editor put before a line does not hide the record, so that
 * the journal sees it and stops rather than write it again; its hash is wrong, and the check says so.
 */
export function withoutBom(line: string): string {
  return line.charCodeAt(0) === 0xfeff ? line.slice(1) : line;
}
