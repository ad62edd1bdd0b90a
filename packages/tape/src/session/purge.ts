import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from '../tape/append.ts';
import { summarizerKind } from '../tape/info.ts';
import { settleDead } from '../tape/leftovers.ts';
import { isDeleted, selectTape, type TapeRow, tapeById } from '../tape/tape.ts';
import { eraseTapes, hasContent } from './erase.ts';
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
  const quotedBy = quotesOf(writer.db, now);
  const erasing = decidePurge(writer, now).map(({ tape: one }) => ({
    tape: one,
    epoch: one.id === tape.id ? epoch : one.epoch + 1,
  }));
  const { erased } = eraseTapes(writer, erasing, { reason });
  for (const { tape: one, epoch: own } of erasing)
    moveLifecycle(writer, tapeById(writer.db, one.id), { lifecycle: 'purged', epoch: own });
  return { session: tape.name, id: tape.ulid, erased, repeated: false, quotedBy };
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
