import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { parsed } from '../entry/parsed.ts';
import { summarizerKind } from '../tape/info.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { Beside, BesideTapes } from './beside.ts';

/** A head that something outside of a tape recorded. */
export interface RecordedHead {
  /** The position of that entry; null where only the hash was recorded. */
  readonly seq: Seq | null;
  /** The hash of the entry, in lower-case hex. */
  readonly hash: string;
  /** What recorded it, in words. */
  readonly by: string;
}

/**
 * Returns all heads of a tape that lines of the lineage, marks of merges and compactions recorded. Reads the
 * lines and marks of its own descendants and ancestors, by index, and no others.
 */
export function recordedHeads(db: Db, tape: TapeRow, tapes: BesideTapes): readonly RecordedHead[] {
  const beside = tapes.of(tape.id);
  return [
    ...inOwnLines(beside),
    ...inLinesBelow(tape, beside),
    ...inMarks(tape, beside, tapes),
    ...asSummarizer(db, tape),
  ];
}

/** The heads in the lines about the tape. Only a merge or discard says at which position. */
function inOwnLines({ lines }: Beside): RecordedHead[] {
  const byType = lines.toSorted((a, b) => (a.type < b.type ? -1 : Number(a.type > b.type)));
  return byType.flatMap(({ g, fields = {} }) => {
    const { type, child_head, range } = fields;
    const isMerge = type === 'merge' || type === 'discard';
    return headOf(isMerge ? lastOf(range) : null, child_head, `line ${g} of the lineage`);
  });
}

/**
 * The heads of the tape in the lines of its descendants: the entry that a fork continues from, and the last entry
 * of a merge into the tape. A fork of a fork may continue from this tape as well: `reach` is the last position that
 * a descendant shares with it.
 */
function inLinesBelow({ id, base_seq }: TapeRow, { below }: Beside): RecordedHead[] {
  return below.flatMap(({ g, type: column, peer_id, reach, fields = {} }) => {
    const { type, parent_head, base, seq } = fields;
    const by = `line ${g} of the lineage`;
    if (!makesEdges.has(column)) return [];
    if (type === 'fork') return base === reach && base > base_seq ? headOf(base, parent_head, by) : [];
    if (peer_id !== id || typeof seq !== 'number') return [];
    // A merge writes its mark and one message; a discard writes its mark alone.
    return headOf(type === 'merge' ? seq + 1 : seq, parent_head, by);
  });
}

const makesEdges: ReadonlySet<string> = new Set(['fork', 'merge', 'discard']);

/** The heads in the marks of its merges, on all tapes above it. The key of an erased mark still has the hash. */
function inMarks({ head_seq }: TapeRow, { marksAbove }: Beside, tapes: BesideTapes): RecordedHead[] {
  return marksAbove.flatMap(({ name, seq, key, payload, isAdopted }) => {
    const by = `the mark ${name}@${seq}`;
    // A bundle may have brought a mark of more than is here of its child.
    if (payload === null) return isAdopted === 1 ? [] : headOf(null, key.split(':')[2], by);
    const { state } = tapes.parsed(payload);
    if (isAdopted === 1 && isObject(state) && Number(lastOf(state.range)) > head_seq) return [];
    return isObject(state) ? headOf(lastOf(state.range), state.child_head, by) : [];
  });
}

/** The heads of a summarizer in the compactions, and in the failed ones, of its parent. */
function asSummarizer(db: Db, { ulid, kind, parent_id, parent_name }: TapeRow): RecordedHead[] {
  if (kind !== summarizerKind || parent_id === null) return [];
  return db
    .all<{ seq: Seq; payload: string | null }>(
      `SELECT seq, payload FROM entry WHERE tape_id = @parent_id AND mark = 'boundary'
           AND mark IN ('boundary','rewind','redaction')
         UNION ALL
       SELECT seq, payload FROM entry WHERE tape_id = @parent_id AND name = 'context/not-compacted'`,
      { parent_id },
    )
    .flatMap(({ seq, payload }) => {
      const value = parsed(payload);
      const summarizer = isObject(value.state) ? value.state.summarizer : value.summarizer;
      if (!isObject(summarizer) || summarizer.id !== ulid) return [];
      return headOf(null, summarizer.head, `the summary ${parent_name}@${seq}`);
    });
}

function headOf(seq: Seq | null | undefined, hash: unknown, by: string): RecordedHead[] {
  return typeof hash === 'string' && seq !== undefined ? [{ seq, hash, by }] : [];
}

function lastOf(range: unknown): Seq | undefined {
  const last: unknown = Array.isArray(range) ? range[1] : undefined;
  return typeof last === 'number' ? last : undefined;
}
