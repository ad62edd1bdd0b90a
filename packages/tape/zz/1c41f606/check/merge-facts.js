import { isDeepStrictEqual } from 'node:util';
                                             
                                                         
                                                     
                                               
                                               

/** A merge, as the mark at a position of its target states it. */
                       
                         
                          
                    
                             
 

/**
 * Returns the fields of a mark that do not follow from the child's entries, or from its own place and status.
 * @param collected undefined where an entry of the child was erased
 */
export function factFaults(
  tapes             ,
  { child, tape, seq, state }             ,
  collected                       ,
)           {
  const rest = Array.isArray(state.rest) ? state.rest : [];
  const isPartial = rest.length > 0 || partialStatuses.has(state.status);
  const facts             = {
    gap: seq - 1 - baseIn(tapes, child, tape),
    partial: isPartial ? true : null,
    ...(collected !== undefined && {
      text_seq: collected.textSeq ?? null,
      rest: state.strategy === 'discard' ? null : (collected.rest ?? null),
      duration_ms: collected.durationMs,
      usage: (collected.usage ?? null)        ,
      artifact: (collected.recorded?.artifact ?? null)                   ,
      // The caller may have named the files of a worktree, which makes the report complete.
      complete: collected.complete ? true : (state.complete ?? null),
    }),
  };
  return Object.keys(facts).filter((field) => !isDeepStrictEqual(state[field] ?? null, facts[field]));
}

/** The ends of a task after which a merge says that the text is not the whole. */
const partialStatuses                       = new Set(['halted', 'aborted', 'filtered', 'orphaned']);

/** The last position of an ancestor that a child reads. */
function baseIn(tapes             , child         , { id }         )      {
  let base = child.base_seq;
  for (let at = child; at.parent_id !== null && at.parent_id !== id && at.parent_id < at.id; ) {
    at = tapes.tape(at.parent_id);
    base = Math.min(base, at.base_seq);
  }
  return base;
}
