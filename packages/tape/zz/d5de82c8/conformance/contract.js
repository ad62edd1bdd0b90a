import {
                 
  assistant,
             
             
  toolCall,
  toolResult,
  user,
} from '../entry/entry.js';
import { isObject,                            } from '../entry/json.js';
import { TapeError } from '../errors.js';
                                                   

/** The matchers that the contract uses; vitest, jest and others provide them. */
                           
                                
                                   
                                        
                                  
 

/** The test runner that runs the contract. */
                         
                                                                     
                                                
 

/** Opens a new, empty store. Each case disposes of its own. */
                                              

/** A place where stores keep their data: it survives each store, and several can be open on it at once. */
                                                          
                                     
                               
 

/** One part of the contract. */
                                                           

/** Collects the items of a synchronous or asynchronous iterable. */
export async function all   (items                                )               {
  const found      = [];
  for await (const item of items) found.push(item);
  return found;
}

/** The error of an act: code, data and message. */
                          
                        
                                                   
                           
 

/** Returns the TapeError of an act, or the code `none` when it does not throw. */
export async function refusal(act               )                   {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    return { code: error.code, data: error.data, message: error.message };
  }
  return { code: 'none', data: {}, message: '' };
}

/** Makes an assistant message with one tool call per id. */
export function asks(...ids                   )        {
  return assistant(ids.map((id) => toolCall(id, 'read', { path: id })));
}

/** Makes the result of such a call. */
export function answers(id        , output       = `of ${id}`)        {
  return toolResult({ toolCallId: id, toolName: 'read' }, output);
}

/** Returns the parts of a message entry; none for other entries. */
export function partsOf(entry                   )               {
  const payload = entry?.payload;
  return isObject(payload) && Array.isArray(payload.content) ? payload.content.filter(isObject) : [];
}

/** Returns the state of an anchor entry; empty for other entries. */
export function stateOf(entry                   )             {
  const payload = entry?.payload;
  return isObject(payload) && isObject(payload.state) ? payload.state : {};
}

/** Returns the text of a message entry; for other entries their kind and name. */
export function textOf(entry                   )         {
  if (entry?.kind !== 'message') return [entry?.kind, entry?.name].filter(Boolean).join(' ');
  return partsOf(entry)
    .map((part) => String(part.text ?? part.type))
    .join('');
}

/** Creates a session with the messages `m1`, `m2`, … from position 2 on. */
export async function sessionOf(store           , name        , messages        )                {
  await store.sessions.open(name);
  const batch = Array.from({ length: messages }, (_, i) =>
    i % 2 === 0 ? user(`m${i + 1}`) : assistant(`m${i + 1}`),
  );
  if (batch.length > 0) await store.entries.append(name, batch);
}

/** Creates `main` with two messages, and a finished child `child` with the result "done". */
export async function finishedChild(store           )                {
  await sessionOf(store, 'main', 2);
  await store.lineage.fork('main', { name: 'child' });
  await store.entries.append('child', [user('Do it.'), assistant('done')]);
}
