/**
 * Tapes in the database: finding a session (`find.ts`, `info.ts`), the right to write it (`lease.ts`),
 * appending (`append.ts`, `open-calls.ts`), reading (`read.ts`, `interval.ts`, `point.ts`), and the rows
 * beside it (`post.ts`, `chunks.ts`). `leftovers.ts` records what a run that died had saved of its answer, which
 * `partial-answer.ts` makes. Imports `entry` and what lies below it.
 */

import type { Db } from '../db/db.ts';
import { quote } from '../entry/name.ts';
import type { Conversation } from '../entry/speaker.ts';
import { TapeError } from '../errors.ts';

/** A reference to a session: its name, alias, ULID, or a unique prefix of its ULID of at least six characters, in either case; tried in this order. */
export type Ref = string;

/** The lifecycle of a session. */
export type Lifecycle = (typeof lifecycles)[number];
export const lifecycles = ['active', 'archived', 'destroyed', 'purged'] as const;

/** The state of a child's run. */
export type Task = (typeof tasks)[number];
export const tasks = ['running', 'completed', 'halted', 'failed', 'aborted', 'filtered', 'orphaned'] as const;

/** Where the work of a child went: into its parent, or nowhere. */
export type Delivery = 'merged' | 'discarded';

/** A row of `tape`, with its parent's name. */
export interface TapeRow extends Conversation {
  readonly id: number;
  readonly ulid: string;
  readonly realm: string;
  readonly name: string;
  readonly incarnation: number;
  readonly kind: string;
  readonly parent_id: number | null;
  readonly spawn_key: string | null;
  readonly request_hash: Uint8Array | null;
  readonly from_seq: number | null;
  readonly from_anchor: string | null;
  readonly floor_seq: number;
  readonly base_seq: number;
  readonly base_hash: Uint8Array;
  readonly head_seq: number;
  readonly head_hash: Uint8Array;
  readonly settled_seq: number;
  readonly epoch: number;
  readonly lifecycle: Lifecycle | 'staging';
  readonly task: Task | null;
  readonly delivery: Delivery | null;
  readonly merged_at: number | null;
  readonly deliver: string | null;
  readonly spawn_call: string | null;
  readonly title: string | null;
  readonly ephemeral: number;
  readonly created_at: number;
  readonly updated_at: number;
  /** Counts the children that were forked without a key, from 1; null for others. */
  readonly ordinal: number | null;
  readonly name_key: string;
  readonly last_message_at: number | null;
  readonly parent_name: string | null;
  readonly parent_ulid: string | null;
}

/**
 * Checks a status from a caller.
 * @param act the refused act, up to the value: `set the task of 'main' to`
 * @throws TAPE_BAD_STATUS
 */
export function assertStatus(act: string, value: string, allowed: readonly string[]): void {
  if (allowed.includes(value)) return;
  throw new TapeError(
    'TAPE_BAD_STATUS',
    `cannot ${act} ${quote(String(value))}: the values are ${allowed.join(', ')}`,
    { data: { value, allowed } },
  );
}

/**
 * Whether a session was deleted, or purged too: it has given up its names, and its ULID alone finds it.
 */
export function isDeleted({ lifecycle }: { readonly lifecycle: string }): boolean {
  return lifecycle === 'destroyed' || lifecycle === 'purged';
}

/** The condition of queries for tapes that have their names. */
export const hasNames = `lifecycle NOT IN ('destroyed','purged')`;

/** What an error calls a lifecycle. */
export function lifecycleWord(lifecycle: string): string {
  return lifecycle === 'destroyed' ? 'deleted' : lifecycle;
}

/** A session, and what an error says of its state. */
interface Standing {
  readonly session: string;
  readonly id: string;
  readonly lifecycle: TapeRow['lifecycle'];
}

/**
 * Rejects an act on a session that is archived, deleted or purged.
 * @param act the refused act: `run`
 * @throws TAPE_ARCHIVED
 */
export function assertActive(standing: Standing, act: string): void {
  if (standing.lifecycle !== 'active') throw notActive(standing, `${act} '${standing.session}'`);
}

/**
 * Rejects what would write to a session that is deleted or purged.
 * @throws TAPE_ARCHIVED
 */
export function assertKept(
  { name, ulid, lifecycle }: Pick<TapeRow, 'name' | 'ulid' | 'lifecycle'>,
  act: string,
): void {
  if (isDeleted({ lifecycle })) throw notActive({ session: name, id: ulid, lifecycle }, `${act} '${name}'`);
}

/** Makes the error of an act that the lifecycle of a session does not allow. */
export function notActive({ session, id, lifecycle }: Standing, act: string): TapeError {
  return new TapeError('TAPE_ARCHIVED', `cannot ${act}: it is ${lifecycleWord(lifecycle)}`, {
    data: { session, id, lifecycle },
  });
}

/** Selects tape rows with the names and ULIDs of their parents. A parent is older: a changed row can name another. */
export const selectTape: string = `SELECT t.*, p.name AS parent_name, p.ulid AS parent_ulid
  FROM tape t LEFT JOIN tape p ON p.id = t.parent_id AND p.id < t.id`;

export function tapeById(db: Db, id: number): TapeRow {
  const row = db.get<TapeRow>(`${selectTape} WHERE t.id = @id`, { id });
  if (row === undefined) throw new TapeError('TAPE_CORRUPT', `cannot find tape ${id}: its row is missing`);
  return row;
}

/** Returns the newest incarnation of a name that was not deleted, staged ones included. */
export function tapeByName(db: Db, realm: string, name: string): TapeRow | undefined {
  return db.get<TapeRow>(
    `${selectTape} WHERE t.realm = @realm AND t.name = @name AND t.${hasNames} ORDER BY t.incarnation DESC LIMIT 1`,
    { realm, name },
  );
}

/** How a session is referred to in a realm: by its name, or, when it is of another realm or deleted, by its id. */
export function refIn(realm: string, tape: Pick<TapeRow, 'realm' | 'name' | 'ulid' | 'lifecycle'>): string {
  return tape.realm === realm && !isDeleted(tape) ? tape.name : tape.ulid;
}
