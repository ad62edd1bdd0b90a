import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
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

type ChainTape = Pick<TapeRow, 'id' | 'floor_seq' | 'base_seq'>;

/**
 * The chain of tapes of a session: a position belongs to the first tape whose base is below it. A parent is older than
 * its child: a row that says otherwise was changed, and could make a tape its own ancestor.
 */
const chain = `WITH RECURSIVE seg(tape_id, parent_id, base, hi) AS (
  SELECT id, parent_id, base_seq, @hi FROM tape WHERE id = @tape
  UNION ALL
  SELECT p.id, p.parent_id, p.base_seq, min(s.hi, s.base) FROM seg s JOIN tape p ON p.id = s.parent_id
      AND p.id < s.tape_id WHERE min(s.hi, s.base) > @lo)`;

/** Returns the tapes that store positions `(lo, hi]` of a session, newest first. */
export function segments(db: Db, tape: ChainTape, lo: Seq, hi: Seq): Segment[] {
  const from = Math.max(lo, tape.floor_seq);
  if (from >= tape.base_seq) return hi > from ? [{ tapeId: tape.id, lo: from, hi }] : [];
  return db.all<Segment>(
    `${chain} SELECT tape_id AS tapeId, max(base, @lo) AS lo, hi FROM seg WHERE hi > max(base, @lo)`,
    { tape: tape.id, lo: from, hi },
  );
}

/** An entry with a mark, and the tape that stores it. */
interface Marked {
  readonly tapeId: number;
  readonly seq: Seq;
  readonly ref: Seq | null;
}

/** Returns the newest entry with a mark among positions `(lo, hi]`, with its `ref`: of the session's own, then of the inherited ones. */
export function lastMarked(
  db: Db,
  tape: ChainTape,
  mark: 'boundary' | 'rewind',
  { lo, hi }: Interval,
): Marked | undefined {
  const own = db.get<Marked>(
    `SELECT tape_id AS tapeId, seq, ref FROM entry WHERE tape_id = ? AND mark = '${mark}'
       AND mark IN ('boundary','rewind','redaction') AND seq > ? AND seq <= ? ORDER BY seq DESC LIMIT 1`,
    [tape.id, Math.max(lo, tape.base_seq), hi],
  );
  return own ?? (lo < tape.base_seq ? lastInherited(db, tape, mark, { lo, hi }) : undefined);
}

function lastInherited(
  db: Db,
  { id }: ChainTape,
  mark: 'boundary' | 'rewind',
  { lo, hi }: Interval,
): Marked | undefined {
  const found = db.get<{ tapeId: number; seq: Seq }>(
    `${chain} SELECT * FROM (SELECT tape_id AS tapeId,
         (SELECT max(seq) FROM entry e WHERE e.tape_id = seg.tape_id AND e.mark = '${mark}'
           AND e.mark IN ('boundary','rewind','redaction') AND e.seq > max(base, @lo) AND e.seq <= seg.hi) AS seq
       FROM seg WHERE hi > max(base, @lo)) newest WHERE seq IS NOT NULL LIMIT 1`,
    { tape: id, lo, hi },
  );
  if (found === undefined) return undefined;
  const row = db.get<{ ref: Seq | null }>('SELECT ref FROM entry WHERE tape_id = @tapeId AND seq = @seq', {
    ...found,
  });
  return { ...found, ref: row?.ref ?? null };
}

/** An interval of a session, and the rewind that hides it, if one does. */
interface ReadInterval extends Interval {
  readonly hiddenBy?: Seq;
}

/**
 * Divides `(floor, head]` into what a session shows and what rewinds hide, newest first: `E(h) = E(to) ++ (r, h]`
 * for the last rewind r, which hides `(to, r]`. Lazy: a view that ends at a boundary reads few.
 */
function* intervals(db: Db, tape: ChainTape, head: Seq): Generator<ReadInterval> {
  const floor = tape.floor_seq;
  let hi = head;
  while (hi > floor) {
    const rewind = lastMarked(db, tape, 'rewind', { lo: floor, hi });
    if (rewind === undefined) {
      yield { lo: floor, hi };
      return;
    }
    if (rewind.seq < hi) yield { lo: rewind.seq, hi };
    const to = Math.max(floor, Math.min(rewind.ref ?? floor, rewind.seq - 1));
    yield { lo: to, hi: rewind.seq, hiddenBy: rewind.seq };
    hi = to;
  }
}

/** Yields the intervals of `(floor, head]` that no rewind hides, newest first. */
export function* visible(db: Db, tape: ChainTape, head: Seq): Generator<Interval> {
  for (const { lo, hi, hiddenBy } of intervals(db, tape, head)) if (hiddenBy === undefined) yield { lo, hi };
}

/** Returns the rewind that hides a position from a session's current view, or undefined. */
export function hiddenBy(db: Db, tape: ChainTape & Pick<TapeRow, 'head_seq'>, seq: Seq): Seq | undefined {
  for (const { lo, hi, hiddenBy } of intervals(db, tape, tape.head_seq))
    if (seq > lo) return seq > hi ? undefined : hiddenBy;
  return undefined;
}

/** Positions of a session, both ends included, and the position of the rewind that hides them, if one does. */
export interface SessionRange {
  readonly from: Seq;
  readonly to: Seq;
  readonly hiddenBy?: Seq;
}

/** Returns the ranges of a session up to a head, oldest first; only those that end at `from` or after it. */
export function rangesOf(db: Db, tape: ChainTape, head: Seq, from: Seq): SessionRange[] {
  const ranges: SessionRange[] = [];
  for (const { lo, hi, ...read } of intervals(db, tape, head)) {
    if (hi < from) break;
    ranges.push({ from: lo + 1, to: hi, ...read });
  }
  return ranges.reverse();
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
