import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import { blobHashes, dropUnneeded } from '../entry/blob.ts';
import type { Draft, Seq } from '../entry/entry.ts';
import { parsed } from '../entry/parsed.ts';
import { TapeError } from '../errors.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import { summarizerKind } from '../tape/info.ts';
import { settleDead } from '../tape/leftovers.ts';
import { isRunOpen, saveRun } from '../tape/open-run.ts';
import { isDeleted, selectTape, type TapeRow, tapeById } from '../tape/tape.ts';
import { moveLifecycle } from './state.ts';

/** What a purge would erase. */
export interface PurgePreview {
  readonly session: string;
  readonly id: string;
  /** How many entries lose their content: its own, and those of the sessions in which its summaries and its title were written. */
  readonly erased: number;
  /** Whether it was purged before: nothing is written. */
  readonly repeated: boolean;
  /**
   * What may still hold some of the content: merges that quote it and forks that carry an anchor's state, as
   * `session@seq`, and lines of the graph file with the beginning of an intention, as `session_graph.jsonl:line`.
   */
  readonly quotedBy: readonly string[];
}

/** The receipt of a purge. */
export interface Purged extends PurgePreview {
  /**
   * Whether the file was written anew and its WAL truncated, so that nothing of the content is left in them. False when
   * others read or wrote throughout, or the disk is full: the same purge again does what is left to do.
   */
  readonly wiped: boolean;
}

/** A session that is purged together with the one that the caller named, and what of its own entries has content. */
interface Erasing {
  readonly tape: TapeRow;
  readonly entries: number;
}

/**
 * Decides on a purge. Reads only.
 * @throws TAPE_CONFLICT while forks inherit entries of the session, named in `data.forks`; TAPE_UNSETTLED while calls have
 * no result
 */
function decidePurge({ db }: Pick<Writer, 'db'>, tape: TapeRow): readonly Erasing[] {
  const forks = forksOf(db, tape).map((fork) => (isDeleted(fork) ? fork.ulid : fork.name));
  if (forks.length > 0)
    throw new TapeError(
      'TAPE_CONFLICT',
      `cannot purge '${tape.name}': ${forks.length === 1 ? 'a fork inherits' : `${forks.length} forks inherit`} its entries: ${forks.slice(0, namedMax).join(', ')}${forks.length > namedMax ? ', …' : ''}`,
      { data: { session: tape.name, id: tape.ulid, forks } },
    );
  const summarizers = db.all<TapeRow>(
    `${selectTape} WHERE t.parent_id = @id AND t.kind = '${summarizerKind}' AND t.lifecycle <> 'purged' ORDER BY t.id`,
    { id: tape.id },
  );
  return [...summarizers, tape].map((one) => {
    if (one.settled_seq !== one.head_seq)
      throw new TapeError(
        'TAPE_UNSETTLED',
        `cannot purge '${one.name}': tool calls after @${one.settled_seq} have no result yet`,
        { data: { session: one.name, settled: one.settled_seq } },
      );
    const { n = 0 } =
      db.get<{ n: number }>(`SELECT count(*) AS n FROM entry WHERE tape_id = @id AND ${hasContent}`, {
        id: one.id,
      }) ?? {};
    return { tape: one, entries: n };
  });
}

/** How many forks an error names. */
const namedMax = 5;

/**
 * The entries that a purge erases: those with content, here or where a bundle left it. A rewind has none, and a redaction
 * keeps its reason.
 */
const hasContent = `kind NOT IN ('redaction','rewind') AND (payload IS NOT NULL
  OR EXISTS (SELECT 1 FROM absent a WHERE a.tape_id = entry.tape_id AND a.seq = entry.seq))`;

/** The forks that inherit own entries of a tape, and were not purged themselves, in the order of their creation. */
function forksOf(db: Db, { id, base_seq: base }: TapeRow): readonly TapeRow[] {
  return db.all<TapeRow>(
    `WITH RECURSIVE below (id, floor, reach) AS (
       SELECT id, floor_seq, base_seq FROM tape WHERE parent_id = @id AND id > @id
       UNION ALL SELECT c.id, c.floor_seq, min(b.reach, c.base_seq) FROM below b JOIN tape c
         ON c.parent_id = b.id AND c.id > b.id)
     ${selectTape} JOIN below b ON b.id = t.id
       WHERE b.reach > @base AND b.reach > b.floor AND t.lifecycle <> 'purged'
         AND NOT (t.parent_id = @id AND t.kind = '${summarizerKind}') ORDER BY t.id`,
    { id, base },
  );
}

/**
 * What a purge would erase, or has erased before. Reads only.
 * @throws what `purgeTape` throws
 */
export function previewPurge(writer: Pick<Writer, 'db'>, tape: TapeRow): PurgePreview {
  const erasing = tape.lifecycle === 'purged' ? [] : decidePurge(writer, tape);
  return {
    session: tape.name,
    id: tape.ulid,
    erased: erasing.reduce((sum, { entries }) => sum + entries, 0),
    repeated: tape.lifecycle === 'purged',
    quotedBy: quotesOf(writer.db, tape),
  };
}

/**
 * Erases the content of a session for good, in the caller's transaction: of each own entry, as a redaction does, its
 * title, its inbox, and the sessions in which its summaries and its title were written. A redaction for each entry
 * records the reason. The hash chain still verifies, and the names are free.
 * @throws TAPE_CONFLICT, TAPE_UNSETTLED as `decidePurge`
 */
export function purgeTape(
  writer: Writer,
  tape: TapeRow,
  { reason, epoch, settles }: { readonly reason: string; readonly epoch: number; readonly settles: boolean },
): PurgePreview {
  if (tape.lifecycle === 'purged') return previewPurge(writer, tape);
  const now = settles ? settleDead(writer, tape, { epoch }) : tape;
  const { db } = writer;
  const quotedBy = quotesOf(db, now);
  let erased = 0;
  // The trigger that lets nothing else be erased looks for the redaction of each entry.
  db.exec(`CREATE INDEX entry_redacted ON entry (tape_id, ref) WHERE mark = 'redaction'`);
  for (const { tape: one } of decidePurge(writer, now)) {
    const own = one.id === tape.id ? epoch : one.epoch + 1;
    erased += eraseEntries(writer, one, { reason, epoch: own });
    emptyBeside(db, one);
    moveLifecycle(writer, tapeById(db, one.id), { lifecycle: 'purged', epoch: own });
  }
  db.exec('DROP INDEX entry_redacted');
  return { session: tape.name, id: tape.ulid, erased, repeated: false, quotedBy };
}

interface Body {
  readonly id: number;
  readonly seq: Seq;
  readonly isRedacted: 0 | 1;
}

const pageRows = 500;

/** Erases the content of all entries of a tape, and returns of how many. The redactions come behind its head. */
function eraseEntries(
  writer: Writer,
  tape: TapeRow,
  { reason, epoch }: { readonly reason: string; readonly epoch: number },
): number {
  const { db } = writer;
  let now = tape;
  const ids: number[] = [];
  for (let after = tape.base_seq; ; ) {
    const page = db.all<Body>(
      `SELECT id, seq, EXISTS (SELECT 1 FROM entry r WHERE r.tape_id = entry.tape_id AND r.mark = 'redaction'
           AND r.mark IN ('boundary','rewind','redaction') AND r.seq <= @head AND r.ref = entry.seq) AS isRedacted
         FROM entry WHERE tape_id = @tape AND seq > @after AND seq <= @head AND ${hasContent} ORDER BY seq LIMIT @limit`,
      { tape: tape.id, after, head: tape.head_seq, limit: pageRows },
    );
    // A bundle may have brought a redaction alone.
    const drafts = page
      .filter(({ isRedacted }) => isRedacted === 0)
      .map(
        ({ seq }): Draft => ({ kind: 'redaction', mark: 'redaction', ref: seq, payload: { seq, reason } }),
      );
    if (drafts.length > 0) now = writeEntries(writer, now, drafts, epoch).tape;
    crashPoint('purge/entries');
    for (const { id, seq } of page) {
      db.run('UPDATE entry SET payload = NULL, meta = NULL, salt = NULL WHERE id = @id', { id });
      // What was redacted is gone for good: nothing is missing here.
      db.run('DELETE FROM absent WHERE tape_id = @tape AND seq = @seq', { tape: tape.id, seq });
    }
    ids.push(...page.map(({ id }) => id));
    if (page.length < pageRows) break;
    after = page.at(-1)?.seq ?? after;
  }
  db.forgetWords(ids);
  crashPoint('purge/bodies');
  return ids.length;
}

/** Removes what is stored of a session beside its entries: bytes, sums, an inbox, what was saved of an answer, its title. */
function emptyBeside(db: Db, { id }: TapeRow): void {
  const own = { id };
  const posted = db
    .all<{ body: string }>('SELECT body FROM inbox WHERE tape_id = @id', own)
    .flatMap(({ body }) => blobHashes(parsed(body)));
  const refs = 'FROM blob_ref WHERE entry_id IN (SELECT id FROM entry WHERE tape_id = @id)';
  const hashes = db.all<{ hash: Uint8Array }>(`SELECT DISTINCT hash ${refs}`, own).map(({ hash }) => hash);
  db.run(`DELETE ${refs}`, own);
  for (const table of ['inbox', 'stream_chunk', 'touch', 'usage'])
    db.run(`DELETE FROM ${table} WHERE tape_id = @id`, own);
  dropUnneeded(db, [...hashes, ...posted.map((hash) => Buffer.from(hash, 'hex'))]);
  saveRun(db, id, isRunOpen(db, id));
  db.run('UPDATE tape SET title = NULL WHERE id = @id', own);
  crashPoint('purge/beside');
}

/** What quotes the content of a session: merges into others, forks that carry an anchor's state, and lines with its intention. */
function quotesOf(db: Db, { id, base_seq: base }: TapeRow): readonly string[] {
  const merges = db.all<{ name: string; seq: Seq }>(
    `SELECT t.name, e.seq FROM lineage l JOIN tape t ON t.id = l.peer_id
       JOIN entry e ON e.tape_id = l.peer_id AND e.seq = l.seq + 1
       WHERE l.tape_id = @id AND l.type = 'merge' AND e.payload IS NOT NULL ORDER BY l.g`,
    { id },
  );
  const forks = db.all<{ name: string; seq: Seq }>(
    `WITH RECURSIVE below (id) AS (
       SELECT id FROM tape WHERE parent_id = @id AND id > @id
       UNION SELECT c.id FROM below b JOIN tape c ON c.parent_id = b.id AND c.id > b.id)
     SELECT t.name, e.seq FROM below b JOIN tape t ON t.id = b.id
       JOIN entry e ON e.tape_id = t.id AND e.seq = t.base_seq + 1
       WHERE t.from_seq > @base AND t.from_anchor IS NOT NULL AND e.payload IS NOT NULL ORDER BY t.id`,
    { id, base },
  );
  const lines = db.all<{ g: number }>(
    `SELECT g FROM lineage WHERE tape_id = @id AND type = 'fork' AND line ->> '$.intention' IS NOT NULL`,
    { id },
  );
  return [
    ...[...merges, ...forks].map(({ name, seq }) => `${name}@${seq}`),
    ...lines.map(({ g }) => `session_graph.jsonl:${g}`),
  ];
}
