import { isBlobRef } from './blob.js';
                                             
import { isObject,           } from './json.js';

/** Name of the event that records the changes in a session's worktree. */
export const workspaceClosed = 'workspace/closed';

/** A file that a patch changes. Paths are relative to the top of the repository. */
                            
                        
                                                               
                                             
                         
                                                                                           
                         
 

/** The changes that a child made to the files of a repository, as its merge delivers them. */
                           
                         
     
                                                                                                          
          
     
                        
                         
                                       
                                                                  
                        
                        
 

/**
 * Returns the artifact that an entry records. Any caller can append events, so a malformed one is no
 * artifact. Pure.
 */
export function artifactOf({
  kind,
  name,
  payload,
}                                          )                       {
  if (kind !== 'event' || name !== workspaceClosed || !isObject(payload)) return undefined;
  const { base, tree, files, patch } = payload;
  if (!isBlobRef(patch) || patch.as !== 'bytes' || !isObjectName(base) || !isObjectName(tree))
    return undefined;
  if (!Array.isArray(files) || !files.every(isPatchFile)) return undefined;
  return { type: 'patch', blob: patch.hash, bytes: patch.size, files, base, tree };
}

/** Returns whether a value is a full git object name, SHA-1 or SHA-256. */
export function isObjectName(value         )                  {
  return typeof value === 'string' && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(value);
}

const changes                       = new Set(['added', 'changed', 'deleted', 'renamed']);

function isPatchFile(value      )                            {
  if (!isObject(value)) return false;
  const { path, change, from, mode } = value;
  const isText = (field                  ) => field === undefined || typeof field === 'string';
  return typeof path === 'string' && changes.has(change) && isText(from) && isText(mode);
}

/** Returns the paths that a patch changes, each once, with the old path of a renamed file. Pure. */
export function patchPaths({ files }                         )                    {
  return [...new Set(files.flatMap(({ path, from }) => (from === undefined ? [path] : [from, path])))];
}

/** An artifact and its position on the child's tape. */
                                   
                    
                              
 
