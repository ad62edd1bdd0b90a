/**
 * Lines of the lineage: this file has their form and bytes, `outbox.ts` writes them in the transaction of an act and to the
 * graph file, `read.ts` reads them in order, and `family.ts` those of sessions that belong together. Imports `tape` and
 * what lies below it.
 */
import { hex, sha256 } from '../entry/hash.js';

/** The event that a line of `session_graph.jsonl` records. */
                         
             
          
            
           
             
           
             
             
           

/** An intention in a graph line: each field cut to 200 characters, with a digest of the whole. */
                                
                               
                                    
                                        
                          
 

/**
 * One line of `session_graph.jsonl` (`docs/format.md`). `session_id`, `parent_session_id`, `from_anchor`,
 * `created_at` and `status` describe the session; `at` is the time of the event; `session`, `parent` and
 * `into` are ULIDs; hashes are lower-case hex.
 */
                              
                
                     
                            
                             
                              
                                            
                                      
                              
                          
                      
                           
                                 
                        
                        
                                                                                                       
                        
                         
                                                                                                 
                                                    
                              
                                     
                                                                                               
                         
                                    
                        
                                                                                                      
                                 
                                
                               
                                                                                                 
                          
                                                                           
                           
                              
                         
                             
     
                                                                                                            
     
                        
 

/** `prev` of the first line. */
export const firstLinePrev         = '0'.repeat(64);

/**
 * Encodes a line without its LF: compact JSON with every control and line-end character escaped, so that all
 * line readers split the file at the same places.
 */
export function encodeLine(line             )         {
  return JSON.stringify(line).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** What the row of a session has that no entry and no line has, and that never changes. */
                     
                                           
                                  
                                  
                                     
                                
                             
 

/** Digests what only the row of a session has, for the line that makes the session. */
export function rowDigest(row           )         {
  const { request_hash: request, ordinal, deliver, spawn_call: call, title, ephemeral } = row;
  const asked = request === null ? null : hex(request);
  return sha256(JSON.stringify(['tape.row.v1', asked, ordinal, deliver, call, title, ephemeral]));
}

/** Returns the hash of a line, the `prev` of the next one. */
export function hashLine(line        )         {
  return sha256(line);
}

/** What the receipt of a committed act says about the graph file, which follows the database. */
                               
                                                                                           
                               
     
                                                                                                                 
                                                                                                        
     
                                
 

/**
 * Receives the lines of the outbox. `@tapedeck/graph` implements it for a file. The store calls it under its
 * write lock, so in one process at a time.
 *
 * @example
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 * import { firstLinePrev, hashLine, type Journal } from '@tapedeck/tape/store';
 *
 * const lines: string[] = [];
 * const journal: Journal = {
 *   tail() {
 *     const last = lines.at(-1);
 *     return { g: lines.length, hash: last === undefined ? firstLinePrev : hashLine(last), torn: false };
 *   },
 *   append: (more) => lines.push(...more),
 * };
 * using store = openTapeStore(':memory:', { journal });
 * store.sessions.open('main');
 * console.log(lines.length); // 1
 * ```
 */
                          
     
                                                                                                              
                                                                                                                
                                       
     
                                                                                
     
                                                                                                             
          
     
                                         
     
                                                                                                                
                                                                                               
     
                      
     
                                                                                                                   
                                                                                      
     
                   
                                                                                      
                                           
 
