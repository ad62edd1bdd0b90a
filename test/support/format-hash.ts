import { createHash } from 'node:crypto';
import type { RawDb } from './raw-db.ts';

/** The fields of an entry's hash, beside its body. */
export interface Link {
  readonly seq: number;
  readonly kind: string;
  readonly mark: string | null;
  readonly name: string | null;
  readonly ref: number | null;
  readonly at: number;
  readonly key: string | null;
}

/** A row of `entry`, as far as it is hashed. */
interface Row extends Link {
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
    previous = sha256(hashed(tape.ulid, row, { body, previous }));
    if (hex(row.body_hash) !== body) throw new Error(`the body of ${session}@${row.seq} has another hash`);
    if (hex(row.hash) !== previous) throw new Error(`${session}@${row.seq} has another hash`);
    return row.payload;
  });
}

/** The text that an entry's hash is of, by the page's own words; hashes are in hex. */
export function hashed(
  ulid: string,
  { seq, kind, mark, name, ref, at, key }: Link,
  { body, previous }: { readonly body: string; readonly previous: string },
): string {
  return JSON.stringify(['tape.entry.v1', ulid, seq, kind, mark, name, ref, at, key, body, previous]);
}

/** In hex. */
export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
