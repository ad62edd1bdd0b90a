/**
 * Tapes in the database: finding a session (`find.ts`, `info.ts`), the right to write it (`lease.ts`),
 * appending (`append.ts`, `open-calls.ts`), reading (`read.ts`, `interval.ts`, `point.ts`), and the rows
 * beside it (`post.ts`, `chunks.ts`). `leftovers.ts` records what a run that died had saved of its answer, which
 * `partial-answer.ts` makes. Imports `entry`, `sqlite` and what lies below them.
 */
import { quote } from '../entry/name.js';
                                                        
import { TapeError } from '../errors.js';
                                              

/** A reference to a session: its name, alias, ULID, or a unique prefix of its ULID; tried in this order. */
                         

/** The lifecycle of a session. */
                                                    
export const lifecycles = ['active', 'archived', 'destroyed', 'purged']         ;

/** The state of a child's run. */
                                          
export const tasks = ['running', 'completed', 'halted', 'failed', 'aborted', 'filtered', 'orphaned']         ;

/** Where the work of a child went: into its parent, or nowhere. */
                                              

/** A row of `tape`, with its parent's name. */
                                               
                      
                        
                         
                        
                               
                        
                                    
                                    
                                           
                                   
                                      
                             
                            
                                 
                            
                                 
                               
                         
                                            
                             
                                     
                                    
                                  
                                     
                                
                             
                              
                              
                                                                                     
                                  
                            
                                          
                                      
                                      
 

/**
 * Checks a status from a caller.
 * @param act the refused act, up to the value: `set the task of 'main' to`
 * @throws TAPE_BAD_STATUS
 */
export function assertStatus(act        , value        , allowed                   )       {
  if (allowed.includes(value)) return;
  throw new TapeError(
    'TAPE_BAD_STATUS',
    `cannot ${act} ${quote(String(value))}: the values are ${allowed.join(', ')}`,
    { data: { value, allowed } },
  );
}

/**
 * Rejects an act on a session that is archived, destroyed or purged.
 * @param act the refused act: `run`
 * @throws TAPE_ARCHIVED
 */
export function assertActive(
  { session, lifecycle }                                                                        ,
  act        ,
)       {
  if (lifecycle === 'active') return;
  throw new TapeError('TAPE_ARCHIVED', `cannot ${act} '${session}': it is ${lifecycle}`, {
    data: { session, lifecycle },
  });
}

/** Selects tape rows with the names and ULIDs of their parents. A parent is older: a changed row can name another. */
export const selectTape         = `SELECT t.*, p.name AS parent_name, p.ulid AS parent_ulid
  FROM tape t LEFT JOIN tape p ON p.id = t.parent_id AND p.id < t.id`;

export function tapeById(db    , id        )          {
  const row = db.get         (`${selectTape} WHERE t.id = @id`, { id });
  if (row === undefined) throw new TapeError('TAPE_CORRUPT', `cannot find tape ${id}: its row is missing`);
  return row;
}

/** Returns the newest incarnation of a name, staged ones included. */
export function tapeByName(db    , realm        , name        )                      {
  return db.get         (
    `${selectTape} WHERE t.realm = @realm AND t.name = @name ORDER BY t.incarnation DESC LIMIT 1`,
    { realm, name },
  );
}

/** How a session is referred to in a realm: by its name, or, when it is of another realm, by its id. */
export function refIn(realm        , tape                                          )         {
  return tape.realm === realm ? tape.name : tape.ulid;
}
