import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { nearNames, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { hiddenBy, segments } from './interval.ts';
import { entryAt, noSeq } from './read.ts';
import type { TapeRow } from './tape.ts';

/**
 * A point of a tape: `head`, a position, `@position`, an anchor's name, or `name~1` for the second-last
 * anchor of that name.
 */
export type Point = 'head' | Seq | `@${number}` | (string & {});

/**
 * Resolves a point to a position. Anchors must be visible at the session's head; a position can be any in
 * `(floor, head]`.
 * @throws TAPE_NO_ANCHOR with near names in `data`, and with the rewind that hides the anchor, if one does;
 * TAPE_NO_SEQ; TAPE_BAD_POINT
 */
export function resolvePoint(db: Db, tape: TapeRow, point: Point): Seq {
  if (point === 'head' || point === '@head') return tape.head_seq;
  const position = typeof point === 'number' ? point : /^@?0*(\d+)$/.exec(point)?.[1];
  if (position !== undefined) return getSeq(tape, position);
  if (typeof point !== 'string')
    throw new TapeError('TAPE_BAD_POINT', `cannot read ${point} as a point: it is no position and no name`);
  const back = /^(.+)~(\d{1,6})$/.exec(point);
  return resolveAnchor(db, tape, back?.[1] ?? point, Number(back?.[2] ?? 0));
}

/** Returns whether a point is the place before the first entry of a session. */
export function isStart(tape: TapeRow, point: Point): boolean {
  return point === 0 || point === '@0' || point === tape.floor_seq || point === `@${tape.floor_seq}`;
}

function getSeq(tape: TapeRow, position: number | string): Seq {
  const seq = Number(position);
  // A text of more digits is a position that no tape has.
  if (typeof position === 'number' && !Number.isSafeInteger(seq))
    throw new TapeError('TAPE_BAD_POINT', `cannot read ${seq} as a position`);
  if (seq <= tape.floor_seq || seq > tape.head_seq) throw noSeq(tape, position);
  return seq;
}

function resolveAnchor(db: Db, tape: TapeRow, name: string, back: number): Seq {
  let skip = back;
  let hidden: { seq: Seq; by: Seq; inherited: boolean } | undefined;
  for (const segment of segments(db, tape, tape.floor_seq, tape.head_seq)) {
    const rows = db.all<{ seq: Seq }>(
      `SELECT seq FROM entry WHERE tape_id = @tapeId AND name = @name AND seq > @lo AND seq <= @hi
         AND mark IN ('anchor','boundary') ORDER BY seq DESC`,
      { ...segment, name },
    );
    for (const { seq } of rows) {
      const by = isStructural(tape, name, seq) ? undefined : hiddenBy(db, tape, seq);
      if (by !== undefined) hidden ??= { seq, by, inherited: by <= tape.base_seq };
      else if (skip > 0) skip -= 1;
      else return seq;
    }
  }
  const near = nearNames(name, anchorNames(db, tape));
  const where = `cannot find anchor ${quote(name)} on '${tape.name}'`;
  const data = { session: tape.name, anchor: name, near, ...(hidden !== undefined && { hidden }) };
  if (hidden !== undefined)
    throw new TapeError(
      'TAPE_NO_ANCHOR',
      `${where}: the rewind ${tape.name}@${hidden.by} hides it; @${hidden.seq} still names it`,
      { data },
    );
  const why = skip < back ? `only ${back - skip} anchors have that name` : 'no such anchor';
  throw new TapeError('TAPE_NO_ANCHOR', `${where}: ${why}`, { data });
}

/** Returns whether an anchor is one of a fork's own first marks, which no rewind hides. */
function isStructural(tape: TapeRow, name: string, seq: Seq): boolean {
  return (name === 'fork/start' || name === 'intention') && seq > tape.base_seq;
}

/** Returns the names of a session's anchors, at most a thousand per tape of its chain. */
function anchorNames(db: Db, tape: TapeRow): string[] {
  return segments(db, tape, tape.floor_seq, tape.head_seq).flatMap((segment) =>
    db
      .all<{ name: string }>(
        `SELECT DISTINCT name FROM entry WHERE tape_id = @tapeId AND name IS NOT NULL AND seq > @lo AND seq <= @hi
           AND mark IN ('anchor','boundary') LIMIT 1000`,
        { ...segment },
      )
      .map((row) => row.name),
  );
}

/** Returns the name of the anchor at a position, if any. */
export function anchorNameAt(db: Db, tape: TapeRow, seq: Seq): string | undefined {
  const entry = entryAt(db, tape, seq);
  return entry?.mark === 'anchor' || entry?.mark === 'boundary' ? entry.name : undefined;
}

/** Returns whether a session has an anchor of this name, hidden ones included. */
export function anchorExists(db: Db, tape: TapeRow, name: string): boolean {
  return segments(db, tape, tape.floor_seq, tape.head_seq).some(
    (segment) =>
      db.get(
        `SELECT 1 FROM entry WHERE tape_id = @tapeId AND name = @name AND seq > @lo AND seq <= @hi
           AND mark IN ('anchor','boundary') LIMIT 1`,
        { ...segment, name },
      ) !== undefined,
  );
}
