/**
 * What the author of another `TapeStore` imports from `@tapedeck/tape/store`: the types of its groups, their options,
 * requests and receipts, and the rules that every store follows: forms of entries and names, hashes, and known options.
 * `@tapedeck/tape/store/conformance` tests the result.
 *
 * @module @tapedeck/tape/store
 */
                                                   
                                                                                  
export {
               
  blobBytesMax,
  blobHashes,
  isBlobRef,
  isTextRef,
  restoreBlobs,
               
} from '../entry/blob.js';
export {                   childName, taskSlug } from '../entry/child-name.js';
export { assertDraft } from '../entry/encode.js';
                                                         
export {                                kindFault,                   optionFault } from '../entry/fields.js';
export { bodyHash,                 entryHash, genesisHash, sha256 } from '../entry/hash.js';
export { encodeJson, entryBytesMax, jsonDepthMax } from '../entry/json.js';
export {
  derivedNameMax,
  isUlid,
  isWorkerName,
  nameFault,
  nameKey,
  nameMax,
  nearNames,
  parseAnchorName,
  parseName,
  tapeName,
} from '../entry/name.js';
export { normalise } from '../entry/normalise.js';
export {             touchesOf } from '../entry/touch.js';
                                                                             
                                                     
                                                                                       
                                                        
export {
  encodeLine,
  firstLinePrev,
                    
  hashLine,
               
                   
                   
                     
} from '../lineage/line.js';
                                                      
                                                       
                                                     
                                                                      
                                                                  
export {             provablyDead } from '../owner.js';
                                                                            
                                                                          
                                                                               
                                                     
                                                               
                                                                                     
                                                                   
                                                        
export { fenced, leaseTtlMs,                   } from '../tape/lease.js';
                                               
                                                
export {
                     
  assertOptions,
                 
                    
                  
  fieldsOf,
                    
                  
                      
                     
                       
                 
                    
} from './options.js';
                                                                            
             
          
          
          
        
         
          
       
         
           
           
        
                    
export {                 wrapStore } from './wrap.js';
