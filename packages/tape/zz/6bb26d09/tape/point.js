                                             
import { nearNames, quote } from '../entry/name.js';
import { TapeError } from '../errors.js';
                                              
import { hiddenBy, segments } from './interval.js';
import { entryAt, noSeq } from './read.js';
                                         

/**
 * A point of a tape: `head`, a position, `@position`, an anchor's name, or `name~1` for the second-last
 * anchor of that name.
 */
                                                                

/**
 * Resolves a point to a position. Anchors must be visible at the session's head; a position can be any in
 * `(floor, head]`.
 * @throws TAPE_NO_ANCHOR with near names in `data`, and with the rewind that hides the anchor, if one does;
 * TAPE_NO_SEQ; TAPE_BAD_POINT
 */
export function resolvePoint(db    , tape         , point       )      {
  if (point === 'head' || point === '@head') return tape.head_seq;
  const position = typeof point === 'number' ? point : /^@?(\d{1,15})$/.exec(point)?.[1];
  if (position !== undefined) return getSeq(tape, Number(position));
  if (typeof point !== 'string')
    throw new TapeError('TAPE_BAD_POINT', `cannot read ${point} as a point: it is no position and no name`);
  const back = /^(.+)~(\d{1,6})$/.exec(point);
  return resolveAnchor(db, tape, back?.[1] ?? point, Number(back?.[2] ?? 0));
}

/** Returns whether a point is the place before the first entry of a session. */
export function isStart(tape         , point       )          {
  return point === 0 || point === '@0' || point === tape.floor_seq || point === `@${tape.floor_seq}`;
}

function getSeq(tape         , seq        )      {
  if (!Number.isSafeInteger(seq)) throw new TapeError('TAPE_BAD_POINT', `cannot read ${seq} as a position`);
  if (seq <= tape.floor_seq || seq > tape.head_seq) throw noSeq(tape, seq);
  return seq;
}

function resolveAnchor(db    , tape         , name        , back        )      {
  let skip = back;
  let hidden                                   ;
  for (const segment of segments(db, tape, tape.floor_seq, tape.head_seq)) {
    const rows = db.all              (
      `SELECT seq FROM entry WHERE tape_id = @tapeId AND name = @name AND seq > @lo AND seq <= @hi
         AND mark IN ('anchor','boundary') ORDER BY seq DESC`,
      { ...segment, name },
    );
    for (const { seq } of rows) {
      const by = isStructural(tape, name, seq) ? undefined : hiddenBy(db, tape, seq);
      if (by !== undefined) hidden ??= { seq, by };
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
function isStructural(tape         , name        , seq     )          {
  return (name === 'fork/start' || name === 'intention') && seq > tape.base_seq;
}

/** Returns the names of a session's anchors, at most a thousand per tape of its chain. */
function anchorNames(db    , tape         )           {
  return segments(db, tape, tape.floor_seq, tape.head_seq).flatMap((segment) =>
    db
      .all                  (
        `SELECT DISTINCT name FROM entry WHERE tape_id = @tapeId AND name IS NOT NULL AND seq > @lo AND seq <= @hi
           AND mark IN ('anchor','boundary') LIMIT 1000`,
        { ...segment },
      )
      .map((row) => row.name),
  );
}

/** Returns the name of the anchor at a position, if any. */
export function anchorNameAt(db    , tape         , seq     )                     {
  const entry = entryAt(db, tape, seq);
  return entry?.mark === 'anchor' || entry?.mark === 'boundary' ? entry.name : undefined;
}

/** Returns whether a session has an anchor of this name, hidden ones included. */
export function anchorExists(db    , tape         , name        )          {
  return segments(db, tape, tape.floor_seq, tape.head_seq).some(
    (segment) =>
      db.get(
        `SELECT 1 FROM entry WHERE tape_id = @tapeId AND name = @name AND seq > @lo AND seq <= @hi
           AND mark IN ('anchor','boundary') LIMIT 1`,
        { ...segment, name },
      ) !== undefined,
  );
}
