import type { Db } from '../db/db.ts';
import { hex } from '../entry/hash.ts';
import { isUlid, isWorkerName } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { getTape } from './find.ts';
import { hasNames, type Ref, type TapeRow } from './tape.ts';

/** What an append needs of a tape's row. */
export type TapeHead = Pick<
  TapeRow,
  | 'id'
  | 'ulid'
  | 'name'
  | 'head_seq'
  | 'head_hash'
  | 'settled_seq'
  | 'epoch'
  | 'last_message_at'
  | 'message_count'
  | 'last_speaker'
>;

/** A tape to append to, and what can stand in the way. */
export interface AppendHead extends TapeHead {
  /** 1 when someone took the lease, living or dead. */
  readonly is_leased: 0 | 1;
  /** 1 when chunks of a live answer are saved. */
  readonly is_live: 0 | 1;
  readonly lifecycle: TapeRow['lifecycle'];
}

const select = `SELECT id, ulid, name, head_seq, head_hash, settled_seq, epoch, last_message_at, message_count,
  last_speaker, lifecycle,
  EXISTS (SELECT 1 FROM lease WHERE tape_id = t.id) AS is_leased,
  EXISTS (SELECT 1 FROM stream_chunk WHERE tape_id = t.id) AS is_live FROM tape t`;

const byName = `${select} WHERE realm = ? AND name = ? AND ${hasNames} ORDER BY incarnation DESC LIMIT 1`;
const byId = `${select} WHERE id = ?`;

/**
 * Returns the session of a reference, to append to it: in one statement, when the reference is a name.
 * @throws TAPE_NO_SESSION with the nearest names in `data`
 */
export function getHead(db: Db, realm: string, ref: Ref): AppendHead {
  const isName = typeof ref === 'string' && !isUlid(ref) && !isWorkerName(ref);
  const named = isName ? db.get<AppendHead>(byName, [realm, ref]) : undefined;
  if (named !== undefined && named.lifecycle !== 'staging') return named;
  return db.get<AppendHead>(byId, [getTape(db, realm, ref).id]) as AppendHead;
}

/**
 * Refuses an act whose caller read another head.
 * @param expected the hash (hex) of the head that the caller read
 * @param act what cannot be done: `append to`
 * @throws TAPE_STALE_HEAD
 */
export function assertHead(
  { name, head_seq, head_hash }: Pick<TapeHead, 'name' | 'head_seq' | 'head_hash'>,
  expected: string | undefined,
  act: string,
): void {
  if (expected === undefined || expected === hex(head_hash)) return;
  throw new TapeError('TAPE_STALE_HEAD', `cannot ${act} '${name}': its head is now @${head_seq}`, {
    data: { session: name, head: head_seq },
  });
}
