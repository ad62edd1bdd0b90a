import { isObject,                 } from './json.js';
import { recordedUsage,            } from './usage.js';

/** A model call, as the entry of its answer records it. */
                       
                                        
                          
                        
                                                                   
                         
                                                                                                        
                              
 

/** What of an entry says which call it records. */
                     
                        
                            
                                         
 

/** Returns the call that an entry records: of an assistant message, of the summary of a merge, or of a compaction. Pure. */
export function callOf({ kind, payload, meta = {} }           )                   {
  const isMessage = kind === 'message';
  const usage = isMessage || kind === 'compaction' ? recordedUsage(meta) : undefined;
  if (usage === undefined || !isObject(payload)) return undefined;
  // The message of a merge records the usage of its summary.
  if (isMessage && payload.role !== 'assistant' && meta.source !== 'merge') return undefined;
  return {
    ...(typeof meta.model === 'string' && { model: meta.model }),
    usage,
    ...(typeof meta.cost === 'number' && { cost: meta.cost }),
    isMessage,
  };
}
