import { type Blob, extractBlobs, keepBlobs } from './blob.ts';
import type { Sources } from './clock.ts';
import { crashPoint } from './crash-point.ts';
import { type Draft, normalise, type Seq } from './entry.ts';
import { TapeError } from './errors.ts';
import { bodyHash, entryHash, hex } from './hash.ts';
import { encodeJson, isObject, type Json } from './json.ts';
import { quote } from './name.ts';
import { loadBatch, nextBatch, saveBatch } from './open-calls.ts';
import type { Db } from './sqlite.ts';
import type { TapeRow } from './tapes.ts';

/** The receipt of an append. */
export interface Appended {
  readonly session: string;
  /** The first and last position of the batch, those of repeated entries included. */
  readonly from: Seq;
  readonly to: Seq;
  readonly added: number;
  readonly repeated: number;
  /** Hash of the session's newest entry, lower-case hex. */
  readonly head: string;
}

/** What an act needs to write: the connection and where time, ids and salts come from. */
export interface Writer {
  readonly db: Db;
  readonly sources: Sources;
}

interface Written {
  readonly tape: TapeRow;
  readonly seqs: readonly Seq[];
  readonly added: number;
}

/**
 * Writes drafts at the end of a tape, inside the caller's transaction. `epoch` is the one to write under; the
 * tape's row is compared and set with the epoch and head that were read, so a writer that was overtaken changes
 * nothing. A draft whose key is on the tape already is a repetition and adds nothing.
 * @throws TAPE_FENCED, TAPE_KEY_CONFLICT, TAPE_BAD_ENTRY
 */
export function writeEntries(
  { db, sources }: Writer,
  tape: TapeRow,
  drafts: readonly Draft[],
  epoch: number = tape.epoch,
): Written {
  const at = sources.now();
  const seqs: Seq[] = [];
  let seq = tape.head_seq;
  let head = tape.head_hash;
  let settled = tape.settled_seq;
  let batch = settled < seq ? loadBatch(db, tape.id) : undefined;
  for (const draft of drafts) {
    const { payload: value, blobs } = extractBlobs(draft.payload);
    const payload = encodeJson(value, `a ${draft.kind} entry`);
    const repeated = draft.key === undefined ? undefined : findRepeated(db, tape, draft, draft.key, payload);
    if (repeated !== undefined) {
      seqs.push(repeated);
      continue;
    }
    seq += 1;
    head = insertEntry({ db, sources }, tape, { draft, seq, at, epoch, payload, previous: head, blobs });
    crashPoint('append/entry');
    const next = nextBatch(batch, { seq, kind: draft.kind, payload: value });
    saveBatch(db, tape.id, seq, { was: batch, now: next });
    crashPoint('append/calls');
    batch = next;
    if (batch === undefined) settled = seq;
    touchState(db, tape.id, seq, draft);
    crashPoint('append/state');
    seqs.push(seq);
  }
  const moved = db.run(
    `UPDATE tape SET head_seq = @seq, head_hash = @head, settled_seq = @settled, epoch = @epoch, updated_at = @at
       WHERE id = @id AND epoch = @was AND head_seq = @from`,
    { id: tape.id, seq, head, settled, epoch, at, was: tape.epoch, from: tape.head_seq },
  );
  if (moved === 0) throw fenced(tape.name);
  crashPoint('append/head');
  return {
    tape: { ...tape, head_seq: seq, head_hash: head, settled_seq: settled, epoch, updated_at: at },
    seqs,
    added: seq - tape.head_seq,
  };
}

interface NewEntry {
  readonly draft: Draft;
  readonly seq: Seq;
  readonly at: number;
  readonly epoch: number;
  readonly payload: string;
  readonly previous: Uint8Array;
  readonly blobs: readonly Blob[];
}

function insertEntry(
  { db, sources }: Writer,
  tape: TapeRow,
  { draft, seq, at, epoch, payload, previous, blobs }: NewEntry,
): Buffer {
  const meta = draft.meta === undefined || isEmpty(draft.meta) ? null : encodeJson(draft.meta, 'meta');
  const salt = sources.salt();
  const body = bodyHash(salt, payload, meta);
  const link = {
    seq,
    kind: draft.kind,
    mark: draft.mark ?? null,
    name: checkText(draft.name, 'name'),
    ref: draft.ref ?? null,
    at,
    key: checkText(draft.key, 'key'),
  };
  const hash = entryHash(tape.ulid, link, body, previous);
  const id = db.insert(
    `INSERT INTO entry (tape_id, seq, kind, mark, name, ref, at, key, epoch, salt, body_hash, hash, meta, payload)
       VALUES (@tape, @seq, @kind, @mark, @name, @ref, @at, @key, @epoch, @salt, @body, @hash, @meta, @payload)`,
    { ...link, tape: tape.id, epoch, salt, body, hash, meta, payload },
  );
  if (blobs.length > 0) keepBlobs(db, id, blobs);
  return hash;
}

/** The position that holds a key already, when kind, name and payload agree. */
function findRepeated(db: Db, tape: TapeRow, draft: Draft, key: string, payload: string): Seq | undefined {
  const row = db.get<{ seq: Seq; kind: string; name: string | null; payload: string | null }>(
    'SELECT seq, kind, name, payload FROM entry WHERE tape_id = @tape AND key = @key',
    { tape: tape.id, key },
  );
  if (row === undefined) return undefined;
  const same =
    row.kind === draft.kind &&
    row.name === (draft.name ?? null) &&
    (row.payload === null || row.payload === payload);
  if (same) return row.seq;
  throw new TapeError(
    'TAPE_KEY_CONFLICT',
    `cannot append to '${tape.name}' under key ${quote(key.replace(/^u:/, ''))}: ${tape.name}@${row.seq} has it, with other content`,
    { data: { session: tape.name, key, seq: row.seq } },
  );
}

/** Notes which keys of an anchor's state were written where, so that a merge finds conflicts in one seek a key. */
function touchState(db: Db, tapeId: number, seq: Seq, draft: Draft): void {
  if (draft.kind !== 'anchor' || !isObject(draft.payload) || !isObject(draft.payload.state)) return;
  if (draft.name === undefined || /^(?:session|fork|merge)\/|^intention$/.test(draft.name)) return;
  for (const key of Object.keys(draft.payload.state)) {
    if (key === 'summary') continue;
    db.run(
      'INSERT INTO touch (tape_id, what, seq, wrote) VALUES (@tapeId, @what, @seq, 1) ON CONFLICT DO NOTHING',
      { tapeId, what: `state:${key}`, seq },
    );
  }
}

/**
 * Checks, without a store, all of a draft that can be checked: kind and payload, sizes, nesting, key and name.
 * @throws TAPE_BAD_ENTRY
 */
export function checkDraft(draft: Draft): void {
  for (const { kind, payload, meta, name, key } of normalise(draft)) {
    encodeJson(extractBlobs(payload).payload, `a ${kind} entry`);
    if (meta !== undefined) encodeJson(meta, 'meta');
    checkText(name, 'name');
    checkText(key, 'key');
  }
}

const textMax = 512;

/** Names and keys are hashed as JSON and stored as text: a lone surrogate would not come back as it was. */
function checkText(text: string | undefined, what: string): string | null {
  if (text === undefined) return null;
  if (text.length === 0 || text.length > textMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot append: a ${what} must have 1 to ${textMax} characters`);
  if (!text.isWellFormed() || text.includes('\0'))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot append: a ${what} must be well-formed text without NUL`);
  return text;
}

function isEmpty(object: { readonly [key: string]: Json }): boolean {
  for (const _ in object) return false;
  return true;
}

export function fenced(session: string): TapeError {
  return new TapeError('TAPE_FENCED', `cannot write '${session}': another owner has taken it over`, {
    data: { session },
  });
}

/** The receipt for what was written. */
export function receipt({ tape, seqs, added }: Written): Appended {
  const from = seqs.reduce((least, seq) => Math.min(least, seq), seqs[0] ?? tape.head_seq);
  const to = seqs.reduce((most, seq) => Math.max(most, seq), seqs[0] ?? tape.head_seq);
  return { session: tape.name, from, to, added, repeated: seqs.length - added, head: hex(tape.head_hash) };
}

/** The receipt of a batch that is on the tape already, which needs no right to write. */
export function repeatedOnly({ db }: Writer, tape: TapeRow, drafts: readonly Draft[]): Appended | undefined {
  const seqs: Seq[] = [];
  for (const draft of drafts) {
    if (draft.key === undefined) return undefined;
    const payload = encodeJson(extractBlobs(draft.payload).payload, `a ${draft.kind} entry`);
    const seq = findRepeated(db, tape, draft, draft.key, payload);
    if (seq === undefined) return undefined;
    seqs.push(seq);
  }
  return receipt({ tape, seqs, added: 0 });
}
