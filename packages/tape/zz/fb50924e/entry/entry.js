/**
 * Entries: what one may hold, and its stored form. `encode.ts` turns a draft into its stored form, with the
 * bytes of `blob.ts` and `spill.ts` beside it, by the rules of `json.ts`, `name.ts` and `hash.ts`. Imports
 * `sqlite`, for the tables of bytes and touches, and `errors`.
 */
import { isObject,                            } from './json.js';
import { parseAnchorName } from './name.js';

/** A value or a promise of it: a store in this process returns values, a remote one promises. */
                                              

/** Position of an entry: 1, 2, 3 … without gaps. A fork continues its parent's numbering. */
                         

/**
 * Kinds of entries. `x-…` kinds are for applications; views skip them. `docs/format.md` lists the payload of
 * each kind.
 */
                       
             
                 
            
                
            
               
            
            
           
        
                  

/** How an entry changes the reading of its tape. */
                                                                  

/** Facts about an entry that are not its content: run, step, model, source. */
                              

/** One part of an AI SDK `ModelMessage`, stored verbatim, `providerOptions` included. */
                       
                        
                                    
 

/** One immutable fact of a tape. */
                        
                                   
                           
                                                                          
                        
                    
                           
                       
                         
                                                                                                     
                     
                                             
                         
                      
                                                                                         
                      
                                                                                             
                             
                        
                                                                                            
                        
                                                           
                              
                                                                                                
                            
 

/** An entry before it is written. Use the constructors below rather than spelling a kind. */
                        
                           
                       
                         
                     
                            
                                   
                                                                    
                                    
 

                                        

function message(role        , content         , meta                  )        {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return { kind: 'message', payload: { role, content: parts }, meta };
}

/**
 * A message from the user, or from a program in the user's place.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { to } = store.entries.append('main', [user('Plan the release.')]);
 * console.log(to); // 2
 * ```
 */
export const user = (content         , meta       )        => message('user', content, meta);

/**
 * A message from the model. Its tool calls are parts of it and are stored with it, before any of them runs.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), assistant('Test, tag, publish.')]);
 * ```
 */
export const assistant = (content         , meta       )        => message('assistant', content, meta);

/**
 * A part of an assistant message that calls a tool.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, toolCall, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const call = toolCall('call-1', 'read_file', { path: 'NEWS.md' });
 * store.entries.append('main', [user('What is new?'), assistant([call])]);
 * ```
 */
export const toolCall = (toolCallId        , toolName        , input      )       => ({
  type: 'tool-call',
  toolCallId,
  toolName,
  input,
});

/**
 * The result of one tool call. A string or another JSON value becomes the AI SDK's typed output.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const read = { toolCallId: 'call-1', toolName: 'read_file' };
 * const call = toolCall(read.toolCallId, read.toolName, { path: 'NEWS.md' });
 * store.entries.append('main', [user('What is new?'), assistant([call])]);
 * store.entries.append('main', [toolResult(read, 'Faster forks.')]);
 * ```
 */
export function toolResult(
  call                                                            ,
  output                                                         ,
  meta       ,
)        {
  const { toolCallId, toolName } = call;
  return {
    kind: 'tool-result',
    payload: { type: 'tool-result', toolCallId, toolName, output: typedOutput(output) },
    meta,
  };
}

const outputTypes = new Set(['text', 'json', 'error-text', 'error-json', 'content', 'execution-denied']);

export function typedOutput(output         )          {
  if (isObject(output) && typeof output.type === 'string' && outputTypes.has(output.type)) return output;
  return typeof output === 'string' ? { type: 'text', value: output } : { type: 'json', value: output };
}

/**
 * A named event. Views skip events.
 *
 * @example
 * ```ts
 * import { note, openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [note('build/started', { commit: 'a1b2c3d' })]);
 * console.log([...store.entries.read('main', { kind: 'event' })].length); // 1
 * ```
 */
export const note = (name        , payload      , meta       )        => ({
  kind: 'event',
  name,
  payload,
  meta,
});

/**
 * The explicit result of a session, a text or any JSON value: what a merge delivers of a child.
 *
 * @example
 * ```ts
 * import { openTapeStore, result } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'tests' });
 * store.entries.append('tests', [result({ passed: 12, failed: 0 })]);
 * console.log(store.lineage.collect('tests').text); // {"passed":12,"failed":0}
 * ```
 */
export const result = (value      , meta       )        => ({ kind: 'result', payload: { value }, meta });

/**
 * A mark anchor: names this point and stores a state, without starting a new view.
 *
 * @example
 * ```ts
 * import { anchor, openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), anchor('planned', { steps: 3 })]);
 * console.log(store.entries.resolve('main', 'planned')); // 3
 * ```
 */
export const anchor = (name        , state             = {})        => ({
  kind: 'anchor',
  mark: 'anchor',
  name: parseAnchorName(name),
  payload: { state },
});

/**
 * A boundary anchor: the next view starts here, with the state rendered. `keepFrom` is the first position of
 * a tail that stays in view.
 *
 * @example
 * ```ts
 * import { handoff, openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * store.entries.append('main', [handoff('review', { summary: 'The plan is ready.' })]);
 * const { from, messages } = view(store.views.entries('main'));
 * console.log(from, messages.length); // 3 1
 * ```
 */
export const handoff = (
  name        ,
  state                                             = {},
  { keepFrom }                     = {},
)        => ({
  kind: 'anchor',
  mark: 'boundary',
  name: parseAnchorName(name),
  payload: { state },
  ...(keepFrom !== undefined && { ref: keepFrom }),
});

/**
 * A boundary whose state is a summary of a cited range; the range stays readable. The state records the range
 * and how and why the summary was made.
 *
 * @example
 * ```ts
 * import { compaction, openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { from, to } = store.entries.append('main', [user('Plan the release.'), user('Add a changelog.')]);
 * store.entries.append('main', [compaction({ summary: 'A release with a changelog.', range: [from, to] })]);
 * console.log(view(store.views.entries('main')).messages.length); // 1
 * ```
 */
export const compaction = (
  state                                                                                ,
  { keepFrom }                     = {},
)        => ({
  kind: 'compaction',
  mark: 'boundary',
  name: 'compaction',
  payload: { state },
  ...(keepFrom !== undefined && { ref: keepFrom }),
});
