import { isUlid, isWorkerName } from '../entry/name.js';
                                              
import { getTape } from './find.js';
                                              

/** What an append needs of a tape's row. */
                            
          
        
          
          
              
               
                 
           
                     
                   
                  
  

/** A tape to append to, and what can stand in the way. */
                                              
                                                       
                            
                                                  
                          
 

const select = `SELECT id, ulid, name, head_seq, head_hash, settled_seq, epoch, last_message_at, message_count,
  last_speaker, lifecycle,
  EXISTS (SELECT 1 FROM lease WHERE tape_id = t.id) AS is_leased,
  EXISTS (SELECT 1 FROM stream_chunk WHERE tape_id = t.id) AS is_live FROM tape t`;

const byName = `${select} WHERE realm = ? AND name = ? ORDER BY incarnation DESC LIMIT 1`;
const byId = `${select} WHERE id = ?`;

/**
 * Returns the session of a reference, to append to it: in one statement, when the reference is a name.
 * @throws TAPE_NO_SESSION with the nearest names in `data`
 */
export function getHead(db    , realm        , ref     )             {
  const isName = typeof ref === 'string' && !isUlid(ref) && !isWorkerName(ref);
  const named = isName ? db.get          (byName, [realm, ref]) : undefined;
  if (named !== undefined && named.lifecycle !== 'staging') return named;
  return db.get          (byId, [getTape(db, realm, ref).id])            ;
}

                                                        
