/**
 * What a program imports from `@tapedeck/tape`: opening a store, drafts, views, errors, and the types of
 * these.
 *
 * @privateRemarks
 * The package has two more tiers: `store/index.ts` for the author of another store, and `internal.ts` for the
 * packages of this repository. It imports no other package.
 *
 * @module @tapedeck/tape
 */
export {
  anchor,
  assistant,
  compaction,
             
             
                 
  handoff,
            
  note,
            
  result,
           
  toolCall,
  toolResult,
  user,
} from './entry/entry.js';
                                                        
export { sessionName } from './entry/session-name.js';
export { TapeError,                    } from './errors.js';
                                             
                                                              
                                                   
                                                    
                                                 
                                                       
export { processOwner } from './owner.js';
                                                                   
                                                   
export { openTapeStore, SqliteTapeStore,                   } from './store/sqlite.js';
                                                  
                                                 
                                                  
                                             
                                             
                                                           
                                                
export { remakeOf } from './view/manifest.js';
export { parsePolicy,                 } from './view/policy.js';
export { prune } from './view/pruned.js';
                                                      
export { streamView } from './view/stream.js';
export {                              view } from './view/view.js';
