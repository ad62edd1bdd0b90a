import { TapeError } from '../errors.js';
import {            extractBlobs } from './blob.js';
import {            callOf } from './call.js';
                                                          
import { encodeJson,           } from './json.js';
import { normalise } from './normalise.js';
import { isRunOpenAfter } from './run-state.js';
import { sourceTime } from './source-time.js';
import { spillOutput } from './spill.js';
import {             touchesOf } from './touch.js';

/** A draft in its stored form: everything that does not depend on a tape. */
                          
                           
                                                   
                               
                              
                              
                                                                   
                          
                           
                               
                                                
                                  
                                     
                                                                           
                                         
                                        
                                  
                                                                                                        
                                        
 

/**
 * Encodes a normalised draft.
 * @throws TAPE_BAD_ENTRY when it has no JSON form, is too large or too deeply nested, or has a bad key or
 * name
 */
export function encodeDraft({ kind, mark, name, ref, key, meta, payload }       )          {
  const taken = extractBlobs(payload);
  const { payload: value, blobs } =
    kind === 'tool-result' ? spillOutput(taken.payload) : { payload: taken.payload, blobs: [] };
  return {
    kind,
    mark: mark ?? null,
    name: parseText(name, 'name'),
    ref: ref ?? null,
    key: parseText(key, 'key'),
    value,
    payload: encodeJson(value, `a ${kind} entry`),
    meta: meta === undefined || isEmpty(meta) ? null : encodeJson(meta, 'meta'),
    blobs: blobs.length === 0 ? taken.blobs : [...taken.blobs, ...blobs],
    touches: touchesOf({ kind, name, payload: value, meta }),
    opensRun: isRunOpenAfter({ kind, name, payload: value, meta }),
    call: callOf({ kind, payload: value, meta }),
    sourceAt: sourceTime(meta),
  };
}

/**
 * Checks a draft without a store: kind and payload, sizes, nesting, key and name.
 * @throws TAPE_BAD_ENTRY
 */
export function assertDraft(draft       )       {
  for (const normal of normalise(draft)) encodeDraft(normal);
}

const textMax = 512;

/** Names and keys are hashed as JSON and stored as text, where a lone surrogate would be lost. */
function parseText(text                    , what        )                {
  if (text === undefined) return null;
  if (typeof text !== 'string')
    throw new TapeError('TAPE_BAD_ENTRY', `cannot append: a ${what} must be a text`);
  if (text.length === 0 || text.length > textMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot append: a ${what} must have 1 to ${textMax} characters`);
  if (!text.isWellFormed() || text.includes('\0'))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot append: a ${what} must be well-formed text without NUL`);
  return text;
}

function isEmpty(object                                  )          {
  for (const _ in object) return false;
  return true;
}
