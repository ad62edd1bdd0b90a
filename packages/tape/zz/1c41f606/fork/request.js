                                               
import { sha256 } from '../entry/hash.js';
import { encodeJson, isObject,                            } from '../entry/json.js';
import { TapeError } from '../errors.js';
                                                      
                                              
                                            

/**
 * How much of its parent a child inherits, up to the cut: `all` (default), `nothing`, the entries after a
 * point, or the last n messages with the entries between and after them. Messages that a rewind hides do not
 * count; a tool call and its results count as the one message of the call.
 */
                                                                                                

/**
 * How the parent receives a child's result when the child's task ends. `merge`: merged. `merge+turn`: merged, and
 * the merge posts a message that starts a run of the parent. `notify`: not merged; the parent gets a message with
 * the state of the task. `tool-result`: as the result of the call that waits for it.
 */
                                                                        

/** The git repository of a child's worktree. */
                                  
                                                                                
                              
                                                                     
                       
 

/** A fork to make: what the child inherits, its name, its intention and its settings. */
                              
                                                     
                             
                                                                                     
                       
                         
                                                                               
                        
                                 
                         
                             
                                                      
                              
                                                                           
                                 
                                                                        
                              
     
                                                                                                          
                  
     
                              
                                                                                     
                                      
                          
                                    
                               
                                                            
                              
                                                             
                                
                                                                                 
                           
 

/** Work that a child had finished before it was recorded. */
                           
                                                     
                                    
                                      
                                          
 

/**
 * Checks the form of `inherit`, which plain JavaScript can get wrong.
 * @throws TAPE_BAD_POINT
 */
export function assertInherit(parent        , request             )       {
  const { inherit = 'all' } = request;
  const refuse = (why        ) =>
    new TapeError('TAPE_BAD_POINT', `cannot ${actOf(request)} '${parent}': ${why}`, {
      data: { session: parent, inherit: inherit         },
    });
  const { since, last, ...others } = partOf(inherit);
  const isPart =
    Object.keys(others).length === 0 &&
    (isPoint(since) ? last === undefined : last !== undefined && since === undefined);
  if (inherit !== 'all' && inherit !== 'nothing' && !isPart)
    throw refuse("inherit must be 'all', 'nothing', { since: POINT } or { last: N }");
  if (last !== undefined && !(Number.isSafeInteger(last) && last >= 1))
    throw refuse('inherit.last must be a positive whole number of messages');
}

function isPoint(since         )          {
  return typeof since === 'string' || typeof since === 'number';
}

/** The part of the parent's history that `inherit` selects; empty for `all` and `nothing`. */
export function partOf(inherit                     )   
                         
                         
  {
  return isObject(inherit) ? inherit : {};
}

/** Hashes the request rather than what it resolves to, so that a repetition matches after the parent grew. */
export function hashRequest({ inherit, cut, name, intention, worktree, asked: more }             )         {
  const { since, last } = partOf(inherit);
  const asked         = [
    since ?? null,
    cut ?? null,
    inherit === 'nothing',
    name ?? null,
    (intention ?? null)        ,
    ...(worktree === undefined ? [] : [[worktree.repository, worktree.git]]),
  ];
  // Requests without these keep the hash that they had before these fields existed.
  if (last !== undefined || more !== undefined) asked.push({ window: last ?? null, ...more });
  return Buffer.from(sha256(encodeJson(asked, 'a fork request')), 'hex');
}

/** The verb for error messages: a child of kind `session` is a branch. */
export function actOf({ kind }             )                    {
  return kind === 'session' ? 'branch' : 'fork';
}
