/**
 * What changes how a tape reads, or what it still says: rewinds (`rewind.ts`) and redactions (`redact.ts`). `act.ts` names
 * the acts that an undo reverts, and `wipe.ts` clears the file, and its search index, of bytes that were erased. Each act is
 * one entry, and one transaction. Imports `search`, `view`, `tape`, `entry`, `sqlite`, `db`, `errors` and `crash-point`.
 */
import type { Seq } from '../entry/entry.ts';
import type { Json } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import { summarizerKind } from '../tape/info.ts';
import { type Interval, lastMarked, settledAt, visible } from '../tape/interval.ts';
import { isStart, type Point, resolvePoint } from '../tape/point.ts';
import { getEntry } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';

/** The receipt of a rewind. */
export interface Rewound {
  readonly session: string;
  /** Position of the rewind itself. */
  readonly seq: Seq;
  /** The tape reads as if it ended here. */
  readonly to: Seq;
  /** How many entries the rewind hid. No entry is removed. */
  readonly hidden: number;
  /** How many entries it made visible again, that earlier rewinds hid. */
  readonly shown: number;
  readonly snappedFrom?: Seq;
  /** Active children that were forked at a point that is hidden now, without summarizers. */
  readonly forks: readonly string[];
}

/**
 * Appends a rewind: read as if the tape ended at `to`, moved back to a settled point. A later rewind, to
 * before an earlier one too, is just another entry.
 */
export function rewindTape(
  writer: Writer,
  tape: TapeRow,
  { to, epoch, mode }: { to: Point; epoch: number; mode?: string | undefined },
): Rewound {
  const { db } = writer;
  const requested = isStart(tape, to) ? tape.floor_seq : resolvePoint(db, tape, to);
  const target =
    requested === tape.floor_seq ? requested : Math.max(settledAt(db, tape, requested), tape.floor_seq);
  const before = [...visible(db, tape, tape.head_seq)];
  const payload: Json = { to: target, ...(mode !== undefined && { mode }) };
  const { tape: after } = writeEntries(
    writer,
    tape,
    [{ kind: 'rewind', mark: 'rewind', ref: target, payload }],
    epoch,
  );
  return {
    session: tape.name,
    seq: after.head_seq,
    to: target,
    ...changeOf(before, [...visible(db, after, after.head_seq)]),
    ...(target !== requested && { snappedFrom: requested }),
    forks: hiddenForks(writer, tape, target),
  };
}

/**
 * Undoes a rewind, by default the last one, by a rewind to just before it.
 * @throws TAPE_BAD_POINT when the session has no such rewind of its own
 */
export function unrewindTape(
  writer: Writer,
  tape: TapeRow,
  { epoch, rewind }: { epoch: number; rewind?: Seq | undefined },
): Rewound {
  if (rewind !== undefined) {
    const { mark, inherited } = getEntry(writer.db, tape, rewind);
    if (mark !== 'rewind' || inherited)
      throw new TapeError(
        'TAPE_BAD_POINT',
        `cannot unrewind ${tape.name}@${rewind}: it is not a rewind of '${tape.name}'`,
        { data: { session: tape.name, seq: rewind } },
      );
    return rewindTape(writer, tape, { to: rewind - 1, epoch });
  }
  const last = lastMarked(writer.db, tape, 'rewind', { lo: tape.base_seq, hi: tape.head_seq });
  if (last === undefined)
    throw new TapeError('TAPE_BAD_POINT', `cannot unrewind '${tape.name}': it has no rewind`);
  return rewindTape(writer, tape, { to: last.seq - 1, epoch });
}

/** Counts the positions that one list of intervals has and the other does not. Both are newest first. */
function changeOf(
  before: readonly Interval[],
  after: readonly Interval[],
): Pick<Rewound, 'hidden' | 'shown'> {
  const both = before.reduce(
    (sum, a) => sum + after.reduce((n, b) => n + Math.max(0, Math.min(a.hi, b.hi) - Math.max(a.lo, b.lo)), 0),
    0,
  );
  return { hidden: size(before) - both, shown: size(after) - both };
}

function size(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { lo, hi }) => sum + hi - lo, 0);
}

function hiddenForks({ db }: Writer, tape: TapeRow, to: Seq): string[] {
  return db
    .all<{ name: string }>(
      `SELECT name FROM tape WHERE parent_id = @id AND lifecycle = 'active' AND delivery IS NULL
         AND kind <> @summarizer AND base_seq > @to AND base_seq <= @head ORDER BY id`,
      { id: tape.id, to, head: tape.head_seq, summarizer: summarizerKind },
    )
    .map((row) => row.name);
}
