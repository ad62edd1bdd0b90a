import { patchPaths } from '../entry/artifact.js';
                                             
import { saveTouches } from '../entry/touch.js';
                                              
                                                         

/** Something that both sides wrote since the fork. */
                           
                                                          
                        
                      
     
                                                                                                           
     
                       
                                              
                        
 

/** What a child and its parent both changed since the fork. */
                                 
                                                               
                             
                                          
 

/** Something that the child wrote, with the position on its tape. */
                   
                        
                    
 

/**
 * Compares what the child wrote in the range with what the parent and merged siblings wrote since the fork.
 * `written` replaces the paths that the record of the child's worktree names.
 */
export function findConflicts(
  db    ,
  plan           ,
  { written }                                = {},
)                 {
  const { child, into, base, range, collected } = plan;
  const touched = db.all         (
    `SELECT what, max(seq) AS seq FROM touch WHERE tape_id = @child AND wrote = 1 AND seq BETWEEN @from AND @to
       GROUP BY what`,
    { child: child.id, from: range[0], to: range[1] },
  );
  const inWorktree = written?.map((path) => ({ what: `file:${path}`, seq: range[1] })) ?? filesOf(plan);
  const conflicts = eachOnce([...touched, ...inWorktree]).flatMap(({ what, seq }) => {
    const other = db.get                                  (
      `SELECT seq, via FROM touch WHERE tape_id = @into AND what = @what AND wrote = 1 AND seq > @base
         AND (via IS NULL OR via <> @self) ORDER BY seq DESC LIMIT 1`,
      { into: into.id, what, base, self: child.name },
    );
    if (other === undefined) return [];
    return [{ what, child: seq, parent: other.seq, ...(other.via !== null && { via: other.via }) }];
  });
  return { complete: written !== undefined || collected.complete, conflicts };
}

/** Returns the files that the patch of a child's worktree changes. */
function filesOf({ collected: { recorded } }           )                     {
  if (recorded === undefined) return [];
  return patchPaths(recorded.artifact).map((path) => ({ what: `file:${path}`, seq: recorded.seq }));
}

/** Keeps the last of several writes. */
function eachOnce(written                    )                     {
  return [...new Map(written.map((one) => [one.what, one])).values()];
}

/**
 * Copies the child's touches to the parent, at the position of the merge, for later merges to compare with. A
 * discarded child's worktree changes are not copied, because they exist nowhere else.
 */
export function touchMerged(
  db    ,
  plan           ,
  { seq, discard }                                                  ,
)       {
  const { child, into, range } = plan;
  db.run(
    `INSERT INTO touch (tape_id, what, seq, wrote, via)
       SELECT @into, what, @seq, max(wrote), @via FROM touch
         WHERE tape_id = @child AND seq BETWEEN @from AND @to GROUP BY what
       ON CONFLICT DO NOTHING`,
    { into: into.id, seq, via: child.name, child: child.id, from: range[0], to: range[1] },
  );
  if (discard) return;
  const files = filesOf(plan).map(({ what }) => ({ what, wrote: true }));
  saveTouches(db, into.id, { seq, via: child.name }, files);
}
