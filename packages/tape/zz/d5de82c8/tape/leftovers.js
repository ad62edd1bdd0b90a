import { crashPoint } from '../crash-point.js';
import {             note } from '../entry/entry.js';
import { isObject,                 } from '../entry/json.js';
import { normalise } from '../entry/normalise.js';
import { TapeError } from '../errors.js';
import {              writeEntries } from './append.js';
import { dropChunks,               liveRuns } from './chunks.js';
                                          
import { partialAnswer } from './partial-answer.js';

/**
 * The entries that record the saved chunks of a run that died: the partial answer, if anything of it had arrived,
 * and the note that the run was interrupted. Pure.
 */
export function leftoverEntries({ run, chunks: saved }         )                   {
  const chunks = saved.flatMap(({ chunk }) =>
    isObject(chunk) && typeof chunk.type === 'string' ? [{ ...chunk, type: chunk.type }] : [],
  );
  // Each retry saved a head. The chunks before the last head belong to failed attempts.
  const at = chunks.findLastIndex(({ type }) => type === 'data-answer');
  const head = (chunks[at]                          )?.data;
  const partial = partialAnswer(chunks.slice(at + 1), { run, ...(isObject(head) && head) });
  const end = note('run/interrupted', { run });
  return partial === undefined ? [end] : [partial, end];
}

/**
 * Records the saved chunks of runs that died, in the transaction of a writer that found no live owner: they were
 * said before what it writes. Returns the tape after them. Chunks of the run `but` stay.
 */
export function settleDead                       (
  writer        ,
  tape      ,
  { epoch, but }                                                               ,
)       {
  let now = tape;
  for (const live of liveRuns(writer.db, tape)) {
    if (live.run === but) continue;
    now = written(writer, now, leftoverEntries(live), epoch);
    crashPoint('settle/appended');
    dropChunks(writer.db, tape, live.run);
  }
  return now;
}

function written                       (
  writer        ,
  tape      ,
  entries                  ,
  epoch        ,
)       {
  try {
    return writer.db.savepoint(() => writeEntries(writer, tape, entries.flatMap(normalise), epoch).tape);
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_BAD_ENTRY') throw error;
    // The partial answer is too large for an entry, or is none. Keeping it would stop all later writes.
    return writeEntries(writer, tape, entries.slice(-1).flatMap(normalise), epoch).tape;
  }
}
