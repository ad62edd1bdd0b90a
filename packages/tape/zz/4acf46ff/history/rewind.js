                                             
                                             
import { TapeError } from '../errors.js';
import {              writeEntries } from '../tape/append.js';
import { summarizerKind } from '../tape/info.js';
import {                lastMarked, settledAt, visible } from '../tape/interval.js';
import { isStart,             resolvePoint } from '../tape/point.js';
import { getEntry } from '../tape/read.js';
                                               

/** The receipt of a rewind. */
                          
                           
                                       
                    
                                            
                   
                                                              
                          
                                                                          
                         
                             
                                                                                             
                                    
 

/**
 * Appends a rewind: read as if the tape ended at `to`, moved back to a settled point. A later rewind, to
 * before an earlier one too, is just another entry.
 */
export function rewindTape(
  writer        ,
  tape         ,
  { to, epoch, mode }                                                         ,
)          {
  const { db } = writer;
  const requested = isStart(tape, to) ? tape.floor_seq : resolvePoint(db, tape, to);
  const target =
    requested === tape.floor_seq ? requested : Math.max(settledAt(db, tape, requested), tape.floor_seq);
  const before = [...visible(db, tape, tape.head_seq)];
  const payload       = { to: target, ...(mode !== undefined && { mode }) };
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
  writer        ,
  tape         ,
  { epoch, rewind }                                             ,
)          {
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
  before                     ,
  after                     ,
)                                    {
  const both = before.reduce(
    (sum, a) => sum + after.reduce((n, b) => n + Math.max(0, Math.min(a.hi, b.hi) - Math.max(a.lo, b.lo)), 0),
    0,
  );
  return { hidden: size(before) - both, shown: size(after) - both };
}

function size(intervals                     )         {
  return intervals.reduce((sum, { lo, hi }) => sum + hi - lo, 0);
}

function hiddenForks({ db }        , tape         , to     )           {
  return db
    .all                  (
      `SELECT name FROM tape WHERE parent_id = @id AND lifecycle = 'active' AND delivery IS NULL
         AND kind <> @summarizer AND base_seq > @to AND base_seq <= @head ORDER BY id`,
      { id: tape.id, to, head: tape.head_seq, summarizer: summarizerKind },
    )
    .map((row) => row.name);
}
