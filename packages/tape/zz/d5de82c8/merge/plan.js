                                             
                                                   
import { TapeError } from '../errors.js';
                                              
import { getTape } from '../tape/find.js';
import { hiddenBy, segments } from '../tape/interval.js';
import { assertStatus,                                    tapeById, tasks } from '../tape/tape.js';
import {                 collectResult } from './collect.js';

/** How a child's work becomes a message. The caller makes the text, except for `result` and `discard`. */
const mergeStrategies = ['result', 'summary', 'structured', 'pick', 'discard']         ;

/**
 * How the text of a merge is made. `result`: the child's result, else its last answer. `summary`: written by
 * a model. `structured`: the result, checked by its schema. `pick`: chosen entries, quoted. `discard`: none;
 * the parent gets a receipt only.
 */
                                                             

/** A merge request with its child. */
                                                  
                      
 

/** A merge to make: where to, of what text, and what to do about conflicts. */
                               
                                                                               
                      
                                    
                                                               
                         
                                                             
                         
                           
                                                                                                    
                             
                                            
                                                                      
                           
                                                                                                             
                             
     
                                                                                                                     
                                                       
     
                            
                                                                                      
                                
                                                    
                              
                                                                  
                              
     
                                                                                                            
     
                                       
 

/** What was read from the child, and the head for which it is valid. */
                            
                          
                         
                                                             
                     
                                      
                                 
                                
 

/**
 * Reads everything that a merge needs, outside its transaction, so that a long child does not hold the lock.
 */
export function planMerge(db    , realm        , draft            )            {
  const child = getTape(db, realm, draft.child);
  if (draft.strategy !== undefined)
    assertStatus(`merge '${child.name}' with the strategy`, draft.strategy, mergeStrategies);
  if (draft.status !== undefined) assertStatus(`merge '${child.name}' with the status`, draft.status, tasks);
  const { into, base } = chooseTarget(db, realm, child, draft);
  const to = draft.force === true ? child.settled_seq : child.head_seq;
  const range = rangeOf(db, child, { into, to });
  const childHead = headAt(db, child, to);
  return { child, into, base, range, childHead, collected: collectResult(db, child, range) };
}

/**
 * Returns the child's own positions up to `to` that a merge into `into` covers: those after the last merge.
 */
function rangeOf(
  db    ,
  child         ,
  { into, to }                                                          ,
)                      {
  const from = (into === undefined ? undefined : lastMerged(db, child, into)) ?? child.base_seq;
  return [Math.min(from + 1, to), to];
}

/**
 * Collects a child's result from a range of its own positions. Without a range: from those that a merge into its parent
 * covers, or has covered when nothing followed it. If they hold no result, for example only an anchor after a merge,
 * the text is that of all the child's entries; a merge does not repeat it.
 */
export function collect(db    , child         , range                      )            {
  if (range !== undefined) return collectResult(db, child, range);
  const into = child.parent_id === null ? undefined : tapeById(db, child.parent_id);
  const [from, to] = rangeOf(db, child, { into, to: child.head_seq });
  const newest = collectResult(db, child, [from, to]);
  if (newest.textSeq !== undefined || from <= child.base_seq + 1) return newest;
  const { text, textSeq, textFrom, rest, value } = collectResult(db, child, [child.base_seq + 1, to]);
  return {
    ...newest,
    text,
    textSeq,
    ...(textFrom !== undefined && { textFrom }),
    ...(rest !== undefined && { rest }),
    ...(value !== undefined && { value }),
  };
}

function chooseTarget(
  db    ,
  realm        ,
  child         ,
  { into, strategy }                                       ,
)                               {
  const act = strategy === 'discard' ? 'discard' : 'merge';
  const requested = into === undefined ? undefined : getTape(db, realm, into);
  let ancestor = child.parent_id === null ? undefined : tapeById(db, child.parent_id);
  if (ancestor === undefined)
    throw new TapeError(
      'TAPE_CONFLICT',
      `cannot ${act} '${child.name}': it was not forked from any session`,
      {
        data: { session: child.name },
      },
    );
  let base = child.base_seq;
  if (requested === undefined) return { into: ancestor, base };
  while (ancestor.id !== requested.id) {
    if (ancestor.parent_id === null)
      throw new TapeError(
        'TAPE_CONFLICT',
        `cannot ${act} '${child.name}' into '${requested.name}': it is not a descendant of '${requested.name}'`,
        { data: { session: child.name, into: requested.name } },
      );
    base = Math.min(base, ancestor.base_seq);
    ancestor = tapeById(db, ancestor.parent_id);
  }
  return { into: ancestor, base };
}

/** Returns the last position of the child that a visible merge into the session covers. */
function lastMerged(db    , child         , into         )                  {
  const merges = db.all                           (
    `SELECT seq, to_seq FROM lineage WHERE tape_id = @child AND type = 'merge' AND peer_id = @into ORDER BY g DESC`,
    { child: child.id, into: into.id },
  );
  return merges.find(({ seq, to_seq }) => to_seq < child.head_seq && hiddenBy(db, into, seq) === undefined)
    ?.to_seq;
}

function headAt(db    , child         , seq     )             {
  if (seq === child.head_seq) return child.head_hash;
  const [owner] = segments(db, child, seq - 1, seq);
  const row = db.get                      ('SELECT hash FROM entry WHERE tape_id = @tape AND seq = @seq', {
    tape: owner?.tapeId ?? child.id,
    seq,
  });
  return row?.hash ?? child.base_hash;
}
