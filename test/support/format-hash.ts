import { createHash } from 'node:crypto';
import type { RawDb } from './raw-db.ts';

/** A row of `entry`, as far as it is hashed. */
interface Row {
  readonly seq: number;
  readonly kind: string;
  readonly mark: string | null;
  readonly name: string | null;
  readonly ref: number | null;
  readonly at: number;
  readonly key: string | null;
  readonly salt: Uint8Array;
  readonly body_hash: Uint8Array;
  readonly hash: Uint8Array;
  readonly meta: string | null;
  readonly payload: string;
}

/**
 * The payload texts of a root tape as its file holds them, after every hash was computed anew by the page on the
 * format, and by nothing of the packages.
 * @throws when a stored hash is another one
 */
export function hashedPayloads(db: RawDb, session: string): string[] {
  const [tape] = db.all<{ id: number; ulid: string }>('SELECT id, ulid FROM tape WHERE name = ?', session);
  if (tape === undefined) throw new Error(`there is no session ${session}`);
  let previous = sha256(JSON.stringify(['tape.genesis.v1', tape.ulid]));
  return db.all<Row>('SELECT * FROM entry WHERE tape_id = ? ORDER BY seq', tape.id).map((row) => {
    const body = sha256(`${hex(row.salt)}${row.payload}\n${row.meta ?? ''}`);
    const { seq, kind, mark, name, ref, at, key } = row;
    const link = ['tape.entry.v1', tape.ulid, seq, kind, mark, name, ref, at, key, body, previous];
    previous = sha256(JSON.stringify(link));
    if (hex(row.body_hash) !== body) throw new Error(`the body of ${session}@${seq} has another hash`);
    if (hex(row.hash) !== previous) throw new Error(`${session}@${seq} has another hash`);
    return row.payload;
  });
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
