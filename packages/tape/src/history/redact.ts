import { crashPoint } from '../crash-point.ts';
import { dropUnneeded } from '../entry/blob.ts';
import type { Seq } from '../entry/entry.ts';
import { saysSource } from '../entry/import-source.ts';
import { parsed } from '../entry/parsed.ts';
import { leftOfSource } from '../entry/source-time.ts';
import { TapeError } from '../errors.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import { removeCall, type StoredCall, storedCall } from '../tape/calls.ts';
import { segments } from '../tape/interval.ts';
import { settleDead } from '../tape/leftovers.ts';
import { isRunOpen, saveRun } from '../tape/open-run.ts';
import { noSeq } from '../tape/read.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import { withRedactionIndex } from './redaction-index.ts';

/** What a redaction would erase. */
export interface RedactPreview {
  /** The session that owns the entry, and the entry's position. */
  readonly session: string;
  readonly seq: Seq;
  /** Whether it was redacted before: nothing is written. */
  readonly repeated: boolean;
  /**
   * What may still hold the content: merges that quote it and forks that carry an anchor's state, as
   * `session@seq`, and the graph file's line with the beginning of an intention, as
   * `session_graph.jsonl:line`. The caller should check these.
   */
  readonly quotedBy: readonly string[];
}

/** The receipt of a redaction. */
export interface Redacted extends RedactPreview {
  /** Position of the redaction entry on the owner's tape. */
  readonly by: Seq;
  /**
   * Whether the file was written anew, and the WAL truncated. False when others used the file throughout, or the disk
   * failed, or the redaction left that to a later act: the file or the WAL still has the content then, until the redaction is
   * repeated.
   */
  readonly logEmptied: boolean;
}

/** Returns the tape that owns a position of a session. */
export function ownerOfSeq({ db }: Pick<Writer, 'db'>, tape: TapeRow, seq: Seq): TapeRow {
  const [owner] = seq > tape.floor_seq && seq <= tape.head_seq ? segments(db, tape, seq - 1, seq) : [];
  if (owner === undefined) throw noSeq(tape, seq);
  return tapeById(db, owner.tapeId);
}

/** What an erasure finds: the entry, where it was erased before, and what quotes it. */
interface Redactable extends RedactPreview {
  readonly entry: StoredCall & { readonly id: number };
  readonly before: Seq | undefined;
}

/**
 * Decides on an erasure. Reads only.
 * @throws TAPE_BAD_ENTRY for an entry without content, and for one by which imports know the session; TAPE_UNSETTLED for one
 * after the settled point
 */
function decideRedaction(writer: Writer, owner: TapeRow, seq: Seq): Redactable {
  const { db } = writer;
  const entry = db.get<StoredCall & { id: number; name: string | null; key: string | null }>(
    'SELECT id, seq, kind, name, key, payload, meta FROM entry WHERE tape_id = @id AND seq = @seq',
    { id: owner.id, seq },
  );
  if (entry === undefined) throw noSeq(owner, seq);
  const quotedBy = [...mergesOf(writer, owner, seq), ...copiesOf(writer, owner, { seq, name: entry.name })];
  const before = db.get<{ seq: Seq }>(
    `SELECT seq FROM entry WHERE tape_id = @id AND mark = 'redaction' AND mark IN ('boundary','rewind','redaction') AND ref = @seq`,
    { id: owner.id, seq },
  )?.seq;
  // A bundle may have brought the redaction alone: it erases nothing here.
  const repeated = before !== undefined && entry.payload === null;
  const found = { session: owner.name, seq, entry, before, repeated, quotedBy };
  if (before !== undefined) return found;
  if (entry.kind === 'redaction' || entry.kind === 'rewind')
    throw new TapeError(
      'TAPE_BAD_ENTRY',
      `cannot redact ${owner.name}@${seq}: a ${entry.kind} has no content to erase`,
    );
  if (saysSource(entry))
    throw new TapeError(
      'TAPE_BAD_ENTRY',
      `cannot redact ${owner.name}@${seq}: it says what the session was imported from, and has no content of that`,
      { data: { session: owner.name, imported: true } },
    );
  if (seq > owner.settled_seq)
    throw new TapeError(
      'TAPE_UNSETTLED',
      `cannot redact ${owner.name}@${seq}: tool calls after @${owner.settled_seq} have no result yet`,
      { data: { session: owner.name, settled: owner.settled_seq } },
    );
  return found;
}

/** What `redact` would erase, or has erased before. Reads only. */
export function previewRedaction(writer: Writer, owner: TapeRow, seq: Seq): RedactPreview {
  const { session, repeated, quotedBy } = decideRedaction(writer, owner, seq);
  return { session, seq, repeated, quotedBy };
}

/** A redaction to record, by the owner of the tape. */
interface Redaction {
  readonly reason: string;
  /** The epoch of the tape that owns an entry. */
  readonly epochOf: (owner: TapeRow) => number;
  /** What a run that died had saved goes to the tape first. */
  readonly settles: boolean;
}

/** For so many entries, to make an index takes longer than to do without. */
const fewEntries = 100;

/**
 * Erases the content of entries, all or none, in the caller's transaction: payload, meta and salt, so that not even a
 * guess can be checked against the hash. The chain still verifies. Records a redaction entry with the reason for each,
 * removes blobs that no other entry refers to, and removes the entries from the search index.
 * @throws TAPE_BAD_ENTRY for an entry without content, and for one by which imports know the session; TAPE_UNSETTLED for one
 * after the settled point
 */
export function redactEntries(
  writer: Writer,
  tape: TapeRow,
  { seqs, ...redaction }: Redaction & { readonly seqs: readonly Seq[] },
): Omit<Redacted, 'logEmptied'>[] {
  const { db } = writer;
  const erased: number[] = [];
  const owners = new Set<number>();
  const redactAll = () =>
    seqs.map((seq) => {
      // The redaction before it has moved the head of its tape.
      const owner = ownerOfSeq(writer, tapeById(db, tape.id), seq);
      const onErased = (id: number) => {
        erased.push(id);
        owners.add(owner.id);
      };
      return redactEntry(writer, owner, { seq, ...redaction, onErased });
    });
  const reads = seqs.length * tape.head_seq;
  const done = seqs.length > fewEntries ? withRedactionIndex(db, reads, redactAll) : redactAll();
  for (const id of owners) saveRun(db, id, isRunOpen(db, id));
  db.forgetWords(erased);
  crashPoint('redact/index');
  return done;
}

function redactEntry(
  writer: Writer,
  owner: TapeRow,
  {
    seq,
    reason,
    epochOf,
    settles,
    onErased,
  }: Redaction & { readonly seq: Seq; readonly onErased: (entry: number) => void },
): Omit<Redacted, 'logEmptied'> {
  const { db } = writer;
  const epoch = epochOf(owner);
  const { entry, before, repeated, quotedBy } = decideRedaction(writer, owner, seq);
  if (repeated) return { session: owner.name, seq, by: before ?? seq, repeated, quotedBy };
  const was = leftOfSource(parsed(entry.meta ?? '{}'));
  const by =
    before ??
    writeEntries(
      writer,
      settles ? settleDead(writer, owner, { epoch }) : owner,
      [{ kind: 'redaction', mark: 'redaction', ref: seq, payload: { seq, reason, ...(was && { was }) } }],
      epoch,
    ).tape.head_seq;
  crashPoint('redact/entry');
  db.run('UPDATE entry SET payload = NULL, meta = NULL, salt = NULL WHERE id = @id', { id: entry.id });
  // With the entry that begins a session goes the title of its creation.
  if (seq === owner.base_seq + 1) db.run('UPDATE tape SET title = NULL WHERE id = @id', { id: owner.id });
  crashPoint('redact/body');
  const call = storedCall(entry);
  if (call !== undefined) removeCall(db, owner.id, seq, call);
  db.run('DELETE FROM touch WHERE tape_id = @id AND seq = @seq', { id: owner.id, seq });
  onErased(entry.id);
  forgetBlobs(writer, entry.id);
  crashPoint('redact/bytes');
  return { session: owner.name, seq, by, repeated: false, quotedBy };
}

function forgetBlobs({ db }: Writer, entryId: number): void {
  const hashes = db.all<{ hash: Uint8Array }>('SELECT hash FROM blob_ref WHERE entry_id = @entryId', {
    entryId,
  });
  db.run('DELETE FROM blob_ref WHERE entry_id = @entryId', { entryId });
  dropUnneeded(
    db,
    hashes.map(({ hash }) => hash),
  );
}

/** Returns the unredacted messages of merges whose range includes this position. */
function mergesOf({ db }: Writer, owner: TapeRow, seq: Seq): string[] {
  return db
    .all<{ name: string; seq: Seq }>(
      `SELECT t.name, e.seq FROM lineage l JOIN tape t ON t.id = l.peer_id
         JOIN entry e ON e.tape_id = l.peer_id AND e.seq = l.seq + 1
         WHERE l.tape_id = @id AND l.type = 'merge' AND l.to_seq >= @seq AND CAST(l.line ->> '$.range[0]' AS BIGINT) <= @seq
           AND e.payload IS NOT NULL ORDER BY l.g`,
      { id: owner.id, seq },
    )
    .map((row) => `${row.name}@${row.seq}`);
}

/**
 * Returns the forks that carry this anchor's state, and the graph lines that carry the beginning of this
 * intention.
 */
function copiesOf(
  { db }: Writer,
  owner: TapeRow,
  { seq, name }: { seq: Seq; name: string | null },
): string[] {
  const forks = db.all<{ name: string; base_seq: Seq }>(
    `WITH RECURSIVE below(id) AS (
       SELECT @owner UNION SELECT c.id FROM below b JOIN tape c ON c.parent_id = b.id)
     SELECT name, base_seq FROM below JOIN tape USING (id) WHERE from_seq = @seq AND from_anchor IS NOT NULL ORDER BY id`,
    { owner: owner.id, seq },
  );
  const lines =
    name === 'intention'
      ? db.all<{ g: number }>(`SELECT g FROM lineage WHERE tape_id = @owner AND type = 'fork'`, {
          owner: owner.id,
        })
      : [];
  return [
    ...forks.map((fork) => `${fork.name}@${fork.base_seq + 1}`),
    ...lines.map(({ g }) => `session_graph.jsonl:${g}`),
  ];
}
