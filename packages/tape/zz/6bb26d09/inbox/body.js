                                               
import { isObject } from '../entry/json.js';
                                                   
                                               

/** What a process that does not own a session requests of it: an append, a merge, or input to a run. */
                       
                                                                  
                                                          
            

const isText = (value         )          => typeof value === 'string';

/** Whether the fields of an item are there, by its type. */
const isComplete                                                                                            =
  {
    append: ({ drafts }) => areDrafts(drafts),
    input: ({ drafts }) => areDrafts(drafts),
    merge: ({ draft }) => isObject(draft) && isText(draft.child),
    answer: ({ toolCallId }) => isText(toolCallId),
    abort: ({ owner, reason }) => isText(owner) && isText(reason),
  };

function areDrafts(drafts         )          {
  return Array.isArray(drafts) && drafts.every((draft) => isObject(draft) && isText(draft.kind));
}

/** Returns why a stored text is no body of an inbox item; undefined for one that is. Pure. */
export function bodyFault(text        )                     {
  let body         ;
  try {
    body = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  if (!isObject(body) || typeof body.type !== 'string') return 'has no type';
  // An item that only another version knows waits for it.
  if (!Object.hasOwn(isComplete, body.type)) return undefined;
  return isComplete[body.type                     ](body) ? undefined : `is no complete ${body.type}`;
}
