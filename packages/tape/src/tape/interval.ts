import type { Seq } from '../entry/entry.ts';
import type { Db } from '../sqlite/sqlite.ts';
import type { TapeRow } from './tape.ts';

/** Positions `(lo, hi]` on one tape of a session's chain. */
export interface Segment {
  readonly tapeId: number;
  readonly lo: Seq;
  readonly hi: Seq;
}

/** Positions `(lo, hi]` of a session. */
export interface Interval {
  readonly lo: Seq;
  readonly hi: Seq;
}

type ChainTape = Pick<TapeRow, 'id' | 'floor_seq'>;

/** The chain of tapes of a session: a position belongs to the first tape whose base is below it. */
const chain = `WITH RECURSIVE seg(tape_id, parent_id, base, hi) AS (
  SELECT id, parent_id, base_seq, @hi FROM tape WHERE id = @tape
  UNION ALL
  SELECT p.id, p.parent_id, p.base_seq, min(s.hi, s.base) FROM seg s JOIN tape p ON p.id = s.parent_id
    WHERE min(s.hi, s.base) > @lo)`;

/** Returns the tapes that store positions `(lo, hi]` of a session, newest first. */
export function segments(db: Db, tape: ChainTape, lo: Seq, hi: Seq): Segment[] {
  return db.all<Segment>(
    `${chain} SELECT tape_id AS tapeId, max(base, @lo) AS lo, hi FROM seg WHERE hi > max(base, @lo)`,
    { tape: tape.id, lo: Math.max(lo, tape.floor_seq), hi },
  );
}

/** Returns the newest entry with a mark among positions `(lo, hi]`, with its `ref`. */
export function lastMarked(
  db: Db,
  tape: ChainTape,
  mark: 'boundary' | 'rewind',
  { lo, hi }: Interval,
): { tapeId: number; seq: Seq; ref: Seq | null } | undefined {
  const found = db.get<{ tapeId: number; seq: Seq }>(
    `${chain} SELECT tape_id AS tapeId,
       (SELECT max(seq) FROM entry e WHERE e.tape_id = seg.tape_id AND e.mark = '${mark}'
         AND e.mark IN ('boundary','rewind','redaction') AND e.seq > max(base, @lo) AND e.seq <= seg.hi) AS seq
     FROM seg WHERE hi > max(base, @lo) AND seq IS NOT NULL LIMIT 1`,
    { tape: tape.id, lo, hi },
  );
  if (found === undefined) return undefined;
  const row = db.get<{ ref: Seq | null }>('SELECT ref FROM entry WHERE tape_id = @tapeId AND seq = @seq', {
    ...found,
  });
  return { ...found, ref: row?.ref ?? null };
}

/**
 * Yields the intervals of `(floor, head]` that no rewind hides, newest first: `E(h) = E(to) ++ (r, h]` for
 * the last rewind r. Lazy: a view that ends at a boundary reads few.
 */
export function* visible(db: Db, tape: ChainTape, head: Seq): Generator<Interval> {
  const floor = tape.floor_seq;
  let hi = head;
  while (hi > floor) {
    const rewind = lastMarked(db, tape, 'rewind', { lo: floor, hi });
    if (rewind === undefined) {
      yield { lo: floor, hi };
      return;
    }
    if (rewind.seq < hi) yield { lo: rewind.seq, hi };
    hi = Math.min(rewind.ref ?? floor, rewind.seq - 1);
  }
}

/** Returns the rewind that hides a position from a session's current view, or undefined. */
export function hiddenBy(db: Db, tape: ChainTape & Pick<TapeRow, 'head_seq'>, seq: Seq): Seq | undefined {
  let hi = tape.head_seq;
  while (hi > tape.floor_seq) {
    const rewind = lastMarked(db, tape, 'rewind', { lo: tape.floor_seq, hi });
    if (rewind === undefined || seq > rewind.seq) return undefined;
    const to = Math.min(rewind.ref ?? tape.floor_seq, rewind.seq - 1);
    if (seq > to) return rewind.seq;
    hi = to;
  }
  return undefined;
}

/**
 * Returns the settled point at or below a position: the position before the batch of tool calls that it lies
 * in.
 */
export function settledAt(db: Db, tape: ChainTape, seq: Seq): Seq {
  const [owner] = segments(db, tape, seq - 1, seq);
  if (owner === undefined) return seq;
  const batch = db.get<{ from_seq: Seq; to_seq: Seq | null }>(
    'SELECT from_seq, to_seq FROM open_calls WHERE tape_id = @tape AND from_seq < @seq ORDER BY from_seq DESC LIMIT 1',
    { tape: owner.tapeId, seq },
  );
  if (batch === undefined || (batch.to_seq !== null && batch.to_seq < seq)) return seq;
  return batch.from_seq;
}
