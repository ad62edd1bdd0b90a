import { isObject } from './json.js';
import { nearNames } from './name.js';

/**
 * A kind of value. `count`: a position, or a number of things. `limit`: the most of them, `Infinity` for no limit.
 * `duration`: milliseconds, `Infinity` too.
 */
                      
          
          
           
           
              
           
          
            
              
             

                
                              
                         
                                             
 

const isText = (value         )          => typeof value === 'string';

const kinds                                   = {
  text: { words: 'a text', test: isText },
  flag: { words: 'true or false', test: (value) => typeof value === 'boolean' },
  count: {
    words: 'a whole number from 0',
    test: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  },
  limit: {
    words: 'a whole number from 1, or Infinity',
    test: (value) => value === Infinity || (Number.isSafeInteger(value) && Number(value) >= 1),
  },
  duration: {
    words: 'a number of milliseconds from 0',
    test: (value) => typeof value === 'number' && value >= 0,
  },
  texts: { words: 'a list of texts', test: (value) => Array.isArray(value) && value.every(isText) },
  list: { words: 'a list', test: Array.isArray },
  object: { words: 'an object', test: isObject },
  function: { words: 'a function', test: (value) => typeof value === 'function' },
  signal: { words: 'an AbortSignal', test: (value) => value instanceof EventTarget && 'aborted' in value },
};

/** The kind of a field's value; `true` for any. */
                                 

/**
 * All fields of an options type: the kind of the field, or the texts that it can be. The compiler refuses a missing
 * and a surplus name.
 */
                                                                                                     

/** `Fields` of any type. */
                                                                                  

/** Why options cannot be used. */
                              
                                                                         
                          
                                                                                                      
                                   
                                                                                            
                       
 

/** Returns the first fault of options: a field that does not exist, or a value that a field cannot have. Pure. */
export function optionFault(options         , known             )                          {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    return { near: [], why: 'the options must be an object' };
  for (const field in options) {
    const kind = Object.hasOwn(known, field) ? known[field] : undefined;
    if (kind === undefined) return unknownField(field, known);
    const words = wordsUnless(Reflect.get(options, field), kind);
    if (words !== undefined) return { field, near: [], why: `${field} must be ${words}` };
  }
  return undefined;
}

/** What a value must be, in words, when it is something else; `undefined` is something else too. Pure. */
export function kindFault(value         , kind          )                     {
  return kinds[kind].test(value) ? undefined : kinds[kind].words;
}

/** As `kindFault`, for a field that can be absent. */
function wordsUnless(value         , kind                               )                     {
  if (kind === true || value === undefined) return undefined;
  if (typeof kind === 'string') return kinds[kind].test(value) ? undefined : kinds[kind].words;
  // A function stands for a choice of the caller's own.
  if (typeof value === 'function' || (typeof value === 'string' && kind.includes(value))) return undefined;
  return kind.map((text) => `'${text}'`).join(' or ');
}

function unknownField(field        , known             )              {
  const near = nearNames(field, Object.keys(known));
  const hint = near.length === 0 ? '' : `; did you mean ${near.map((name) => `'${name}'`).join(' or ')}?`;
  return { field, near, why: `there is no option '${field}'${hint}` };
}
