                                                     
                                             
import { sha256 } from '../entry/hash.js';
import { isObject,                 } from '../entry/json.js';
import { TapeError } from '../errors.js';
                                                       
                                                
import { hiddenBy } from '../tape/interval.js';
import { getEntry } from '../tape/read.js';
                                               
                                                               
import { artifactIn } from './drafts.js';
                                                       

/** The receipt of a merge. */
                                                              
                          
                         
                                         
                                                             
                    
                                                                         
                                      
                                                                              
                             
                                             
                               
 

/** Makes the receipt of a merge whose mark is, or would be, at `seq`. */
export function receiptOf(
  plan           ,
  draft            ,
  { seq, report }                                                        ,
)         {
  const { child, into, range } = plan;
  return {
    parent: into.name,
    child: child.name,
    state: draft.strategy === 'discard' ? 'discarded' : 'merged',
    seq,
    range,
    repeated: false,
    ...report,
    ...artifactIn(plan),
  };
}

/** Returns the key to write a merge under, and the position of the same merge if it is visible. */
export function visibleMerge(
  { db }                    ,
  into         ,
  key        ,
)                                 {
  let candidate = key;
  for (;;) {
    const row = db.get              ('SELECT seq FROM entry WHERE tape_id = @id AND key = @candidate', {
      id: into.id,
      candidate,
    });
    if (row === undefined) return { key: candidate };
    const hidden = hiddenBy(db, into, row.seq);
    if (hidden === undefined) return { key: candidate, receipt: row.seq };
    candidate = `${key}:${hidden}`;
  }
}

/** Makes the receipt of a merge whose anchor was redacted, from its lineage line. */
function mergedByLine(
  db              ,
  { child, into, seq }                                             ,
)         {
  const row = db.get                                         (
    `SELECT type, line ->> '$.range[0]' AS first, line ->> '$.range[1]' AS last FROM lineage
       WHERE tape_id = @child AND peer_id = @into AND seq = @seq AND type IN ('merge', 'discard')`,
    { child: child.id, into: into.id, seq },
  );
  return {
    parent: into.name,
    child: child.name,
    state: row?.type === 'discard' ? 'discarded' : 'merged',
    seq,
    range: [row?.first ?? child.base_seq + 1, row?.last ?? child.head_seq],
    repeated: true,
    complete: false,
    conflicts: [],
  };
}

/** A merge that a request would repeat. */
                               
                           
                                                      
                               
 

/** Returns the merge at a position of the target; with a refusal if the request has another strategy or result. */
export function earlierMerge(
  { db }                    ,
  { child, into, draft, seq }                                                                ,
)               {
  const { payload } = getEntry(db, into, seq);
  if (payload === null) return { receipt: mergedByLine(db, { child, into, seq }) };
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  const refusal = otherAct({ child, into, draft, seq }, state);
  return {
    receipt: {
      parent: into.name,
      child: child.name,
      state: state.strategy === 'discard' ? 'discarded' : 'merged',
      seq,
      range: state.range                         ,
      repeated: true,
      complete: state.complete === true,
      conflicts: (state.conflicts ?? [])                         ,
      ...(isObject(state.artifact) && { artifact: state.artifact                        }),
    },
    ...(refusal !== undefined && { refusal }),
  };
}

/** Returns why a request cannot repeat the merge whose anchor has this state, or undefined when it can. */
function otherAct(
  { child, into, draft, seq }                                                                ,
  state            ,
)                        {
  const strategy = String(state.strategy);
  if ((strategy === 'discard') !== (draft.strategy === 'discard'))
    return delivered(child, into, strategy === 'discard' ? 'discarded' : 'merged');
  const otherStrategy = draft.strategy !== undefined && draft.strategy !== strategy;
  const otherResult = draft.text !== undefined && sha256(draft.text) !== state.result_digest;
  if (!otherStrategy && !otherResult) return undefined;
  return new TapeError(
    'TAPE_CONFLICT',
    `cannot merge '${child.name}' into '${into.name}' again: ${into.name}@${seq} merged it with another ${
      otherStrategy ? 'strategy' : 'result'
    }`,
    { data: { parent: into.name, child: child.name, seq } },
  );
}

/** The error for a merge of a discarded child, or a discard of a merged one. */
export function delivered(child         , into         , how        )            {
  const act = how === 'merged' ? `discard '${child.name}'` : `merge '${child.name}' into '${into.name}'`;
  return new TapeError('TAPE_CONFLICT', `cannot ${act}: it is already ${how}`, {
    data: { parent: into.name, child: child.name },
  });
}
