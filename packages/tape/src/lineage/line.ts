import { sha256 } from '../entry/hash.ts';

/** What a line of `session_graph.jsonl` records. */
export type LineageType = 'session' | 'fork' | 'status' | 'merge' | 'discard' | 'alias' | 'archive' | 'link';

/** An intention as a graph line carries it: cut to 200 characters a field, with a digest of the whole. */
export interface LineIntention {
  readonly next_steps?: string;
  readonly context_summary?: string;
  readonly trigger_on_complete?: string;
  readonly digest: string;
}

/**
 * One line of `session_graph.jsonl` (`docs/format.md`). The five fields of the origin describe the session;
 * `at` is the time of the event; `session`, `parent` and `into` hold ULIDs; hashes are lower-case hex.
 */
export interface LineageLine {
  readonly v: 1;
  readonly g: number;
  readonly event_id: string;
  readonly type: LineageType;
  readonly session_id: string;
  readonly parent_session_id: string | null;
  readonly from_anchor: string | null;
  readonly created_at: string;
  readonly status: string;
  readonly at: string;
  readonly session: string;
  readonly parent: string | null;
  readonly tape: string;
  readonly kind: string;
  readonly base?: number;
  /** Inherited positions of a fork, or the child's positions that a merge brought, both ends included. */
  readonly range?: readonly [number, number] | null;
  readonly spawn_key?: string;
  readonly intention?: LineIntention;
  /** The session that a merge went into, and the position of the merge there. */
  readonly into?: string;
  readonly into_session_id?: string;
  readonly seq?: number;
  readonly parent_head?: string;
  readonly child_head?: string;
  /** The other name that an alias line gives the session. */
  readonly alias?: string;
  readonly lifecycle?: string;
  readonly task?: string;
  readonly delivery?: string;
  /** Hash of the line before, so that a forged, missing or swapped line shows; 64 zeros on the first. */
  readonly prev: string;
}

/** `prev` of the first line. */
export const firstPrev: string = '0'.repeat(64);

/**
 * One line without its LF: compact JSON in which no byte can be taken for a line end or a control, so that
 * any line reader splits the file alike.
 */
export function encodeLine(line: LineageLine): string {
  return JSON.stringify(line).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** What the next line's `prev` holds. */
export function lineHash(line: string): string {
  return sha256(line);
}

/**
 * Where the outbox's lines go. `@tapedeck/graph` implements it for a file; the store calls it under its own
 * write lock, so one process at a time.
 */
export interface Journal {
  /**
   * The last whole record: its number and hash (0 and `firstPrev` when there is none). `torn`: the file does not end
   * with LF, because a fragment follows that record or because the record lacks only its LF.
   */
  tail(): { readonly g: number; readonly hash: string; readonly torn: boolean };
  /** Seals a torn tail with LF if there is one, also for no lines; appends them in one write; returns once all is on disk. */
  append(lines: readonly string[]): void;
}
