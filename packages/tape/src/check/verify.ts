import { blobHashes } from '../entry/blob.ts';
import type { Seq } from '../entry/entry.ts';
import { bodyText, type ChainLink, entryText, genesisHash, hex, sha256 } from '../entry/hash.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { segments } from '../tape/interval.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';

/** What is wrong, and where. `session` is the owner of the damaged entry; `seq` is absent when it is not one entry. */
export interface Problem {
  readonly code:
    | 'entry-changed'
    | 'entry-missing'
    | 'chain-broken'
    | 'head-wrong'
    | 'base-wrong'
    | 'body-erased'
    | 'row-changed'
    | 'blob-changed'
    | 'lineage-broken'
    | 'database-damaged';
  readonly session: string | null;
  readonly seq: Seq | null;
  readonly message: string;
}

/** What the chain covers of a row of `entry`; salt and hashes in hex: a buffer for each would cost more than hashing. */
interface EntryRow extends ChainLink {
  readonly salt: string | null;
  readonly body_hash: string;
  readonly hash: string;
  readonly meta: string | null;
  readonly payload: string | null;
}

const columns = `seq, kind, mark, name, ref, at, key, meta, payload,
  lower(hex(body_hash)) AS body_hash, lower(hex(hash)) AS hash, CASE WHEN salt IS NOT NULL THEN lower(hex(salt)) END AS salt`;

const pageRows = 512;

/** The tapes to check for a session: itself and every ancestor, up to where the next one was forked from it. */
export function* tapesToVerify(db: Db, tape: TapeRow): Generator<{ tape: TapeRow; to: Seq }> {
  let to = tape.head_seq;
  for (let at: TapeRow | undefined = tape; at !== undefined; ) {
    // A tape that was forked where it inherits itself may lie beside the chain: nothing of its own is read.
    if (at === tape || to > at.base_seq) yield { tape: at, to };
    to = Math.min(at.base_seq, to);
    at = at.parent_id === null ? undefined : tapeById(db, at.parent_id);
  }
}

/**
 * Recomputes one tape's own hash chain from the stored bytes, and its links to its parent and to its own row.
 * Damage is reported once, where it is; checking goes on behind it.
 */
export function* verifyTape(db: Db, tape: TapeRow, to: Seq = tape.head_seq): Generator<Problem> {
  const problem = (code: Problem['code'], seq: Seq | null, message: string): Problem => ({
    code,
    session: tape.name,
    seq,
    message,
  });
  const base = baseHash(db, tape);
  if (base === undefined || hex(base) !== hex(tape.base_hash))
    yield problem(
      'base-wrong',
      tape.base_seq,
      `${tape.name} does not continue from what its parent has at ${tape.base_seq}`,
    );
  let previous: readonly string[] = [hex(tape.base_hash)];
  let expected = tape.base_seq + 1;
  for (let after = tape.base_seq; after < to; ) {
    const rows = db.all<EntryRow>(
      `SELECT ${columns} FROM entry WHERE tape_id = @id AND seq > @after AND seq <= @to ORDER BY seq LIMIT @limit`,
      { id: tape.id, after, to, limit: pageRows },
    );
    for (const row of rows) {
      if (row.seq !== expected) {
        yield problem('entry-missing', expected, `${tape.name}@${expected} is missing`);
        expected = row.seq;
        previous = [];
      }
      previous = yield* verifyEntry(db, tape, { row, previous, problem });
      expected += 1;
    }
    if (rows.length < pageRows) break;
    after = rows.at(-1)?.seq ?? to;
  }
  if (expected !== to + 1)
    yield problem('entry-missing', expected, `${tape.name}@${expected} is missing: its head is ${to}`);
  else if (to === tape.head_seq && !previous.includes(hex(tape.head_hash)))
    yield problem('head-wrong', to, `the recorded head of ${tape.name} is not the hash of its last entry`);
  const stray = strayEntry(db, tape);
  if (stray !== undefined)
    yield problem('head-wrong', stray, `${tape.name}@${stray} lies outside what its tape says it has`);
}

/** An entry at or below its tape's base or past its head: no reader sees it, and no act of the store wrote it. */
function strayEntry(db: Db, { id }: TapeRow): Seq | undefined {
  return db.get<{ seq: Seq }>(
    `SELECT e.seq FROM tape t JOIN entry e ON e.tape_id = t.id AND e.seq <= t.base_seq WHERE t.id = @id
       UNION ALL
     SELECT e.seq FROM tape t JOIN entry e ON e.tape_id = t.id AND e.seq > t.head_seq WHERE t.id = @id LIMIT 1`,
    { id },
  )?.seq;
}

interface Link {
  readonly row: EntryRow;
  /** Hashes that the entry may follow; empty after a gap, where nothing can be said. */
  readonly previous: readonly string[];
  readonly problem: (code: Problem['code'], seq: Seq, message: string) => Problem;
}

/** Checks one entry; returns the hashes that the next one may follow, so that damage is not reported twice. */
function* verifyEntry(db: Db, tape: TapeRow, { row, previous, problem }: Link): Generator<Problem, string[]> {
  const at = `${tape.name}@${row.seq}`;
  if (row.payload === null || row.salt === null) {
    const redacted = db.get(
      `SELECT 1 FROM entry WHERE tape_id = @id AND mark = 'redaction' AND ref = @seq LIMIT 1`,
      { id: tape.id, seq: row.seq },
    );
    if (redacted === undefined)
      yield problem('body-erased', row.seq, `the body of ${at} was erased without a redaction`);
  } else if (sha256(bodyText(row.salt, row.payload, row.meta)) !== row.body_hash) {
    yield problem('entry-changed', row.seq, `the body of ${at} is not what was written`);
    return [row.hash];
  } else
    yield* verifyBlobs(db, row.payload, (why) =>
      problem('blob-changed', row.seq, `the bytes of ${at} ${why}`),
    );
  const hashes = previous.map((hash) => sha256(entryText(tape.ulid, row, row.body_hash, hash)));
  if (hashes.length === 0 || hashes.includes(row.hash)) return [row.hash];
  yield problem('chain-broken', row.seq, `${at} does not follow from the entry before it, or was changed`);
  return [row.hash, ...hashes.slice(-1)];
}

/** The bytes that a body refers to are named in it by their hash, so they are as safe as it is. */
function* verifyBlobs(db: Db, payload: string, problem: (why: string) => Problem): Generator<Problem> {
  if (!payload.includes('"type":"blob"')) return;
  for (const hexHash of blobHashes(JSON.parse(payload))) {
    const row = db.get<{ bytes: Uint8Array }>('SELECT bytes FROM blob WHERE hash = @hash', {
      hash: Buffer.from(hexHash, 'hex'),
    });
    if (row === undefined) yield problem(`are missing: ${hexHash}`);
    else if (sha256(row.bytes) !== hexHash) yield problem(`are not what was written: ${hexHash}`);
  }
}

/** What the first own entry must chain to: the genesis of a root, or the parent's entry at the base. */
function baseHash(db: Db, tape: TapeRow): Uint8Array | undefined {
  if (tape.parent_id === null) return genesisHash(tape.ulid);
  const parent = tapeById(db, tape.parent_id);
  const [owner] = segments(db, { id: parent.id, floor_seq: 0 }, tape.base_seq - 1, tape.base_seq);
  if (owner === undefined) return undefined;
  return db.get<{ hash: Uint8Array }>('SELECT hash FROM entry WHERE tape_id = @tape AND seq = @seq', {
    tape: owner.tapeId,
    seq: tape.base_seq,
  })?.hash;
}
