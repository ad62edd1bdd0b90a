import type { Db } from '../db/db.ts';
import { isUlid, isWorkerName } from '../entry/name.ts';
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
