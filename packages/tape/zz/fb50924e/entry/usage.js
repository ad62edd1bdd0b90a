                                       
import { isObject } from './json.js';

/**
 * Tokens of one or more model calls. The parts do not overlap: input excludes cache, output excludes
 * reasoning.
 */
                        
                         
                          
                             
                             
                              
 

/** Returns the sum of all tokens; for one call, this is how much of the model's window it used. */
export function totalOf({ input, output, reasoning, cacheRead, cacheWrite }       )         {
  return input + output + reasoning + cacheRead + cacheWrite;
}

/**
 * Returns the usage that an entry's meta records, or undefined. Meta can come from any writer, so a missing
 * or invalid count is 0.
 */
export function recordedUsage({ usage }      )                    {
  if (!isObject(usage)) return undefined;
  return {
    input: tokenCount(usage.input),
    output: tokenCount(usage.output),
    reasoning: tokenCount(usage.reasoning),
    cacheRead: tokenCount(usage.cacheRead),
    cacheWrite: tokenCount(usage.cacheWrite),
  };
}

/** Returns a number of tokens as it counts: a fraction too, which some providers report; anything invalid is 0. */
export function tokenCount(tokens         )         {
  const isCount = typeof tokens === 'number' && tokens > 0 && tokens <= Number.MAX_SAFE_INTEGER;
  return isCount ? tokens : 0;
}
