                                             
import { isObject,                 } from '../entry/json.js';
import { parsed } from '../entry/parsed.js';
                                               
                                          

/** The mark of a merge, as far as other entries must agree with it. */
                       
                    
                             
                             
                                      
 

/** What a line of the lineage says about a merge. */
                              
                          
                        
                              
 

/** The positions at which lines of the lineage say that a child was merged into a tape. */
export function mergesInLines({ id }         , { below }        )                                {
  const found = new Map                  ();
  // A line that was changed proves nothing, and the columns beside it are copies.
  for (const { ulid, peer_id, fields = {} } of below) {
    const { type, seq } = fields;
    if (peer_id === id && (type === 'merge' || type === 'discard') && Number.isSafeInteger(seq))
      found.set(seq       , { ulid, fields });
  }
  return found;
}

/** Returns a mark; undefined for an entry that has not the form of one. */
export function markOf(seq     , payload        )                   {
  const value = parsed(payload);
  const state = isObject(value.state) ? value.state : {};
  const [first, last] = Array.isArray(state.range) ? state.range : [];
  const { child_head: childHead } = state;
  if (typeof first !== 'number' || typeof last !== 'number' || typeof childHead !== 'string')
    return undefined;
  return { seq, state, childHead, range: [first, last] };
}
