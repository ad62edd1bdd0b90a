/**
 * Lines of the lineage: this file has their form and bytes, `outbox.ts` writes them in the transaction of an act and to the
 * graph file, `read.ts` reads them in order, and `family.ts` those of sessions that belong together. Imports `tape` and
 * what lies below it.
 */

import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { hex, sha256 } from '../entry/hash.ts';

/** The event that a line of `session_graph.jsonl` records. */
export type LineageType =
  | 'session'
  | 'fork'
  | 'status'
  | 'merge'
  | 'discard'
  | 'alias'
  | 'unalias'
  | 'archive'
  | 'link';

/** An intention in a graph line: each field cut to 200 characters, with a digest of the whole. */
export interface LineIntention {
  readonly next_steps?: string;
  readonly context_summary?: string;
  readonly trigger_on_complete?: string;
  readonly digest: string;
}

/**
 * One line of `session_graph.jsonl` (`docs/format.md`). `session_id`, `parent_session_id`, `from_anchor`,
 * `created_at` and `status` describe the session (in a `link` line, the parent is that of the tree from then on); `at` is the time of the event; `session`, `parent` and
 * `into` are ULIDs; hashes are lower-case hex.
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
  /** Of the line that makes a session: digest of what its row has beside the line, see `rowDigest`. */
  readonly row?: string;
  /** Of the line that makes a session: its name where it comes from, if a bundle brought it under another one. */
  readonly was?: string;
  readonly base?: number;
  /** Positions that a fork inherits, or that a merge covers on the child; both ends included. */
  readonly range?: readonly [number, number] | null;
  readonly spawn_key?: string;
  readonly intention?: LineIntention;
  /** ULID of the session that received the merge; `seq` is the position of the merge there. */
  readonly into?: string;
  readonly into_session_id?: string;
  readonly seq?: number;
  /** Of a merge that an import found: the position at which that session had got the result before. */
  readonly received?: number;
  /** Of a merge whose text is the child's own: the version of the rules by which it was collected. */
  readonly text_version?: number;
  readonly parent_head?: string;
  readonly child_head?: string;
  /** The name that an `alias` line gives to the session, and an `unalias` line takes from it. */
  readonly alias?: string;
  /** Why an `alias` line gives the name, or an `unalias` line takes it. */
  readonly reason?: string;
  /** What the edge of a `link` line is, such as `clear`. */
  readonly edge?: string;
  /** Of an edge that no record names: it was concluded from `evidence`. */
  readonly derived?: true;
  readonly evidence?: string;
  /** Of a `link` line: id of the call of the parent that started the session; `seq` is the position before it. */
  readonly call?: string;
  readonly lifecycle?: string;
  readonly task?: string;
  readonly delivery?: string;
  /**
   * Hash of the previous line, which reveals forged, missing and swapped lines; 64 zeros on the first line.
   */
  readonly prev: string;
}

/** `prev` of the first line. */
export const firstLinePrev: string = '0'.repeat(64);

/**
 * Encodes a line without its LF: compact JSON with every control and line-end character escaped, so that all
 * line readers split the file at the same places.
 */
export function encodeLine(line: LineageLine): string {
  return JSON.stringify(line).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** What the row of a session has that no entry and no line has, and that never changes. */
interface UnsaidRow {
  readonly request_hash: Uint8Array | null;
  readonly ordinal: number | null;
  readonly deliver: string | null;
  readonly spawn_call: string | null;
  readonly title: string | null;
  readonly ephemeral: number;
}

/** Digests what only the row of a session has, for the line that makes the session. */
export function rowDigest(row: UnsaidRow): string {
  const { request_hash: request, ordinal, deliver, spawn_call: call, title, ephemeral } = row;
  const asked = request === null ? null : hex(request);
  return sha256(JSON.stringify(['tape.row.v1', asked, ordinal, deliver, call, title, ephemeral]));
}

/** Whether the title of a session was erased, by a purge or with its first entry: a digest of the row is not known then. */
export function isTitleErased(
  db: Db,
  tape: {
    readonly id: number;
    readonly base_seq: Seq;
    readonly lifecycle: string;
    readonly title: string | null;
  },
): boolean {
  if (tape.title !== null) return false;
  if (tape.lifecycle === 'purged') return true;
  return (
    db.get(
      `SELECT 1 FROM entry WHERE tape_id = @id AND mark = 'redaction' AND mark IN ('boundary','rewind','redaction') AND ref = @seq`,
      { id: tape.id, seq: tape.base_seq + 1 },
    ) !== undefined
  );
}

/** Returns the hash of a line, the `prev` of the next one. */
export function hashLine(line: string): string {
  return sha256(line);
}

/** What the receipt of a committed act says about the graph file, which follows the database. */
export interface GraphReceipt {
  /** The graph file could not be written; the next open for writing adds what it lacks. */
  readonly graphLagging?: true;
  /**
   * The graph file had other lines than the database. It was set aside under a name with its digest, and written
   * anew; together with `graphLagging`, it could not be set aside, or the new one could not be written.
   */
  readonly graphDiverged?: true;
}

/**
 * Receives the lines of the outbox. `@tapedeck/graph` implements it for a file. The store calls it under its
 * write lock, so in one process at a time.
 *
 * @example
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 * import { firstLinePrev, hashLine, type Journal } from '@tapedeck/tape/store';
 *
 * const lines: string[] = [];
 * const journal: Journal = {
 *   tail() {
 *     const last = lines.at(-1);
 *     return { g: lines.length, hash: last === undefined ? firstLinePrev : hashLine(last), torn: false };
 *   },
 *   append: (more) => lines.push(...more),
 * };
 * using store = openTapeStore(':memory:', { journal });
 * store.sessions.open('main');
 * console.log(lines.length); // 1
 * ```
 */
export interface Journal {
  /**
   * Returns number and hash of the last complete record; 0 and `firstLinePrev` for an empty file; a hash that
   * no line has for a file of other text. `torn`: the file does not end with LF, because a fragment follows the
   * record or the record lacks its LF.
   */
  tail(): { readonly g: number; readonly hash: string; readonly torn: boolean };
  /**
   * Ends a torn tail with LF, even without new lines; appends the lines in one write; returns once all is on
   * disk.
   */
  append(lines: readonly string[]): void;
  /**
   * Moves a file whose tail the store did not write to another name, which it returns; the next `append` begins
   * a new file. The store leaves such a file alone when the journal does not have this method.
   */
  setAside?(): string;
  /**
   * Returns a text that changes whenever the file does. The store remembers it after each update, and compares all
   * lines again when it finds another. Without this method only the tail is compared.
   */
  stamp?(): string;
  /** Whether the records of the file are the first of these lines, or all of them. */
  holds?(lines: Iterable<string>): boolean;
}
