import type { Sources } from '../clock.ts';
import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import { type Blob, keepBlobs, loadBlob } from '../entry/blob.ts';
import { type Encoded, encodeDraft } from '../entry/encode.ts';
import type { Draft, Seq } from '../entry/entry.ts';
import { bodyText, entryText, hex, sha256 } from '../entry/hash.ts';
import type { Json } from '../entry/json.ts';
import { quote } from '../entry/name.ts';
import { searchText, wordsOf } from '../entry/search-text.ts';
import { spokenTime } from '../entry/source-time.ts';
import { type Conversation, heard } from '../entry/speaker.ts';
import { saveTouches } from '../entry/touch.ts';
import { TapeError } from '../errors.ts';
import { addCall, type CallsRow, callsRow, saveCalls } from './calls.ts';
import type { TapeHead } from './head.ts';
import { settledAt } from './interval.ts';
import { fenced } from './lease.ts';
import { BatchRows, loadBatch, nextBatch } from './open-calls.ts';
import { saveRun } from './open-run.ts';
import { tapeById } from './tape.ts';

/** The receipt of an append. */
export interface Appended {
  readonly session: string;
  /** First and last position of the batch, repeated entries included. */
  readonly from: Seq;
  readonly to: Seq;
  readonly added: number;
  readonly repeated: number;
  /** Hash of the session's newest entry, lower-case hex. */
  readonly head: string;
}

/** The connection and the sources of time, ids and salts that every write needs. */
export interface Writer {
  readonly db: Db;
  readonly sources: Sources;
}

interface Written<Tape extends TapeHead> {
  readonly tape: Tape;
  readonly seqs: readonly Seq[];
  readonly added: number;
}

/**
 * Appends drafts to a tape, in the caller's transaction, under `epoch`. The update of the tape's row compares
 * the epoch and head that were read, so a writer that was overtaken changes nothing. A draft whose key is on
 * the tape adds nothing.
 * @throws TAPE_FENCED, TAPE_KEY_CONFLICT, TAPE_BAD_ENTRY
 */
export function writeEntries<Tape extends TapeHead>(
  writer: Writer,
  tape: Tape,
  drafts: readonly Draft[],
  epoch: number = tape.epoch,
): Written<Tape> {
  const encoded = drafts.map(encodeDraft);
  return writeEncoded(writer, tape, encoded, { epoch, repeated: repetitions(writer, tape, encoded) });
}

/**
 * Does `writeEntries` for encoded drafts. `repeated`: for each draft the position that already has its key,
 * if any.
 */
export function writeEncoded<Tape extends TapeHead>(
  writer: Writer,
  tape: Tape,
  drafts: readonly Encoded[],
  { epoch, repeated }: { readonly epoch: number; readonly repeated: readonly (Seq | undefined)[] },
): Written<Tape> {
  const { db } = writer;
  const at = writer.sources.now();
  const seqs: Seq[] = [];
  const keys = new Set<string>();
  let seq = tape.head_seq;
  let head = hex(tape.head_hash);
  let settled = tape.settled_seq;
  let spoken = tape.last_message_at;
  let conversation: Conversation = tape;
  let opensRun: boolean | undefined;
  const calls = new Map<string, CallsRow>();
  let batch = settled < seq ? loadBatch(db, tape.id) : undefined;
  const batches = new BatchRows(db, tape.id);
  for (const [i, draft] of drafts.entries()) {
    // A key can occur twice in a batch; its first entry is on the tape by now.
    const before = draft.key !== null && keys.has(draft.key) ? findRepeated(db, tape, draft) : repeated[i];
    if (before !== undefined) {
      seqs.push(before);
      continue;
    }
    if (draft.key !== null) keys.add(draft.key);
    seq += 1;
    if (draft.mark === 'rewind') {
      batches.save();
      assertRewind(db, tape, { seq, to: draft.ref });
    }
    head = insertEntry(writer, tape, { draft, seq, at, epoch, previous: head });
    crashPoint('append/entry');
    const next = nextBatch(batch, { seq, kind: draft.kind, payload: draft.value });
    batches.change(seq, { was: batch, now: next });
    crashPoint('append/calls');
    batch = next;
    if (batch === undefined) settled = seq;
    saveTouches(db, tape.id, { seq }, draft.touches);
    opensRun = draft.opensRun ?? opensRun;
    if (draft.call !== undefined) {
      const { model = '' } = draft.call;
      calls.set(model, addCall(calls.get(model) ?? callsRow(db, tape.id, model), seq, draft.call));
    }
    // An old message that is imported later does not turn the time back.
    const said = spokenTime({ ...draft, at });
    if (said !== undefined) spoken = Math.max(spoken ?? 0, said);
    if (draft.speaker !== undefined) conversation = heard(conversation, draft.speaker);
    crashPoint('append/state');
    seqs.push(seq);
  }
  batches.save();
  const { message_count, last_speaker } = conversation;
  if (opensRun !== undefined) saveRun(db, tape.id, opensRun);
  if (calls.size > 0) saveCalls(db, tape.id, calls.values());
  db.must(
    `UPDATE tape SET head_seq = ?, head_hash = unhex(?), settled_seq = ?, epoch = ?, updated_at = ?, last_message_at = ?,
       message_count = ?, last_speaker = ?
       WHERE id = ? AND epoch = ? AND head_seq = ?`,
    [seq, head, settled, epoch, at, spoken, message_count, last_speaker, tape.id, tape.epoch, tape.head_seq],
    () => fenced(tape.name),
  );
  crashPoint('append/head');
  return {
    tape: {
      ...tape,
      head_seq: seq,
      head_hash: Buffer.from(head, 'hex'),
      settled_seq: settled,
      epoch,
      updated_at: at,
      last_message_at: spoken,
      message_count,
      last_speaker,
    },
    seqs,
    added: seq - tape.head_seq,
  };
}

/** @throws TAPE_BAD_ENTRY for a rewind to no settled point before it */
function assertRewind(
  db: Db,
  tape: TapeHead,
  { seq, to }: { readonly seq: Seq; readonly to: Seq | null },
): void {
  const row = tapeById(db, tape.id);
  const isPlace = to !== null && Number.isSafeInteger(to) && to >= row.floor_seq && to < seq;
  if (isPlace && (to === row.floor_seq || settledAt(db, row, to) === to)) return;
  throw new TapeError(
    'TAPE_BAD_ENTRY',
    `cannot append to '${tape.name}': a rewind to @${to} leads to no point before it at which no call is open`,
  );
}

interface NewEntry {
  readonly draft: Encoded;
  readonly seq: Seq;
  readonly at: number;
  readonly epoch: number;
  readonly previous: string;
}

/** Inserts an entry, and returns its hash. Hashes are hex, which costs half of what buffers do. */
function insertEntry(
  { db, sources }: Writer,
  tape: TapeHead,
  { draft, seq, at, epoch, previous }: NewEntry,
): string {
  const { kind, mark, name, ref, key, meta, payload, blobs } = draft;
  const salt = sources.salt();
  const body = sha256(bodyText(hex(salt), payload, meta));
  const hash = sha256(entryText(tape.ulid, { seq, kind, mark, name, ref, at, key }, body, previous));
  db.run(
    `INSERT INTO entry (tape_id, seq, kind, mark, name, ref, at, key, epoch, salt, body_hash, hash, meta, payload)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, unhex(?), unhex(?), ?, ?)`,
    [tape.id, seq, kind, mark, name, ref, at, key, epoch, salt, body, hash, meta, payload],
  );
  const entry = { tapeId: tape.id, seq };
  if (blobs.length > 0) keepBlobs(db, entry, blobs);
  db.words?.add(entry, wordsOf(searchText(name, draft.value as Json, bytesOf(db, blobs))));
  return hash;
}

/** Loads bytes that an entry refers to: most are its own. */
function bytesOf(db: Db, blobs: readonly Blob[]): (hash: string) => Uint8Array {
  return (wanted) => blobs.find(({ hash }) => hex(hash) === wanted)?.bytes ?? loadBlob(db, wanted);
}

/** Returns for each draft the position that already has its key, if kind, name and payload are the same. */
export function repetitions(
  { db }: Writer,
  tape: TapeHead,
  drafts: readonly Encoded[],
): readonly (Seq | undefined)[] {
  const keys = drafts.flatMap(({ key }) => key ?? []);
  if (keys.length < 2)
    return drafts.map((draft) => (draft.key === null ? undefined : findRepeated(db, tape, draft)));
  // One statement for all keys: nearly always none of them is there.
  const rows = db.all<KeyedRow & { readonly key: string }>(
    `SELECT key, ${keyedColumns} FROM entry WHERE tape_id = ? AND key IN (SELECT value FROM json_each(?))`,
    [tape.id, JSON.stringify(keys)],
  );
  if (rows.length === 0) return drafts.map(() => undefined);
  const byKey = new Map(rows.map((row) => [row.key, row]));
  return drafts.map((draft) => repeatedAt(tape, draft, byKey.get(draft.key ?? '')));
}

/** What an entry is compared by with a draft of the same key. */
interface KeyedRow {
  readonly seq: Seq;
  readonly kind: string;
  readonly name: string | null;
  readonly payload: string | null;
}

const keyedColumns = 'seq, kind, name, payload';

function findRepeated(db: Db, tape: TapeHead, draft: Encoded): Seq | undefined {
  const row = db.get<KeyedRow>(`SELECT ${keyedColumns} FROM entry WHERE tape_id = ? AND key = ?`, [
    tape.id,
    draft.key,
  ]);
  return repeatedAt(tape, draft, row);
}

function repeatedAt(
  tape: TapeHead,
  { key, kind, name, payload }: Encoded,
  row: KeyedRow | undefined,
): Seq | undefined {
  if (row === undefined) return undefined;
  const same = row.kind === kind && row.name === name && (row.payload === null || row.payload === payload);
  if (same) return row.seq;
  throw new TapeError(
    'TAPE_KEY_CONFLICT',
    `cannot append to '${tape.name}' under key ${quote(key?.replace(/^u:/, '') ?? '')}: ${tape.name}@${row.seq} has this key, with other content`,
    { data: { session: tape.name, key, seq: row.seq } },
  );
}

/** Returns the receipt of a write. */
export function receipt({ tape, seqs, added }: Written<TapeHead>): Appended {
  const from = seqs.reduce((least, seq) => Math.min(least, seq), seqs[0] ?? tape.head_seq);
  const to = seqs.reduce((most, seq) => Math.max(most, seq), seqs[0] ?? tape.head_seq);
  return { session: tape.name, from, to, added, repeated: seqs.length - added, head: hex(tape.head_hash) };
}

/**
 * Returns the receipt of a batch that is completely on the tape, or undefined. It requires no right to write.
 */
export function repeatedOnly(tape: TapeHead, repeated: readonly (Seq | undefined)[]): Appended | undefined {
  const seqs = repeated.filter((seq) => seq !== undefined);
  return seqs.length === repeated.length ? receipt({ tape, seqs, added: 0 }) : undefined;
}
