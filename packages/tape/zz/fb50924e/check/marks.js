                                             
import { hex } from '../entry/hash.js';
import { isObject,                 } from '../entry/json.js';
import { parsed } from '../entry/parsed.js';
import { hashLine } from '../lineage/line.js';
                                              
                                               

/** The mark of a merge, as far as other entries must agree with it. */
                       
                    
                             
                             
                                      
 

/** An entry that has the name or the key of a merge's mark, or that a line of the lineage calls one. */
                          
                    
                        
                               
                               
                              
                                  
 

export const markColumns = 'seq, kind, mark, name, key, payload';

/** The entries of a tape that have the name or the key of a mark, in order. */
export function markRows(db    , { id }         )            {
  const rows = db.all         (
    `SELECT ${markColumns} FROM entry WHERE tape_id = @id AND key >= 'merge:' AND key < 'merge;'
       UNION ALL
     SELECT ${markColumns} FROM entry WHERE tape_id = @id AND name >= 'merge/' AND name < 'merge0' AND kind = 'anchor'`,
    { id },
  );
  // Most have both.
  return [...new Map(rows.map((row) => [row.seq, row])).values()].toSorted((a, b) => a.seq - b.seq);
}

/** What a line of the lineage says about a merge. */
                              
                          
                        
                              
 

/** The positions at which lines of the lineage say that a child was merged into a tape. */
export function mergesInLines(db    , { id }         )                                {
  const rows = db.all                                                  (
    `WITH RECURSIVE below(id) AS (
       SELECT id FROM tape WHERE parent_id = @id AND id > @id
       UNION SELECT c.id FROM below b JOIN tape c ON c.parent_id = b.id AND c.id > b.id)
     SELECT l.line, l.hash, t.ulid FROM below b CROSS JOIN lineage l ON l.tape_id = b.id JOIN tape t ON t.id = b.id
       WHERE l.peer_id = @id`,
    { id },
  );
  const found = new Map                  ();
  for (const { line, hash, ulid } of rows) {
    // A line that was changed proves nothing, and the columns beside it are copies.
    const fields = hashLine(line) === hex(hash) ? parsed(line) : {};
    const { type, seq } = fields;
    if ((type === 'merge' || type === 'discard') && Number.isSafeInteger(seq))
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
