import { encodeJson,           } from '../entry/json.js';
import { TapeError } from '../errors.js';
                                              
                                              

/** A chunk of a live answer, in order of arrival. */
                              
                         
                       
 

/** Chunks to save of one run's live answer. */
                             
                        
                       
                                          
 

/** The saved chunks of one run, in order. */
                          
                       
                                          
 

/** The tape of a live answer. */
                                           

/** Selects runs of a session, and their chunks. */
                            
                       
                        
                                                                                                        
                                                            
 

/**
 * Saves chunks of a run's live answer, in the caller's transaction. Chunks that are already saved do not
 * change.
 */
export function saveChunks(db    , tape        , { run, chunks }            )       {
  for (const { index, chunk } of chunks)
    db.run(
      'INSERT INTO stream_chunk (tape_id, run, idx, chunk) VALUES (@tape, @run, @index, @chunk) ON CONFLICT DO NOTHING',
      { tape: tape.id, run, index, chunk: encodeJson(chunk, 'a chunk') },
    );
}

/**
 * Returns the runs of a session that have saved chunks, and the chunks: the run is live, or its process died.
 */
export function liveRuns(db    , tape        , { run: only, from = 0 }            = {})            {
  const one = only === undefined ? '' : 'AND run = @only';
  return db
    .all                 (`SELECT DISTINCT run FROM stream_chunk WHERE tape_id = @tape ${one}`, {
      tape: tape.id,
      ...(only !== undefined && { only }),
    })
    .map(({ run }) => ({
      run,
      chunks: savedChunks(db, tape, run, typeof from === 'number' ? from : (from[run] ?? 0)),
    }));
}

function savedChunks(db    , tape        , run        , from        )                {
  return db
    .all                                (
      'SELECT idx, chunk FROM stream_chunk WHERE tape_id = @tape AND run = @run AND idx >= @from ORDER BY idx',
      { tape: tape.id, run, from },
    )
    .map(({ idx, chunk }) => ({ index: idx, chunk: parsedChunk(tape, run, { idx, chunk }) }));
}

function parsedChunk(
  { name }        ,
  run        ,
  { idx, chunk }                                                  ,
)       {
  try {
    return JSON.parse(chunk)        ;
  } catch (cause) {
    throw new TapeError(
      'TAPE_CORRUPT',
      `cannot read piece ${idx} of run ${run} of '${name}': it is not JSON`,
      {
        data: { session: name },
        cause,
      },
    );
  }
}

/** Deletes the chunks of a run, once its answer is on the tape. */
export function dropChunks(db    , tape        , run        )       {
  db.run('DELETE FROM stream_chunk WHERE tape_id = @tape AND run = @run', { tape: tape.id, run });
}
