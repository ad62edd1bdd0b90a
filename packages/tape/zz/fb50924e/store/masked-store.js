                                               
                                            
import { wrapStore } from './wrap.js';

/**
 * A store that replaces secrets by their names in all that its methods are given, before it is hashed and written.
 * What is on its tapes already stays as it is.
 */
export function maskedStore                         (store       , mask                  )        {
  if (mask === undefined) return store;
  return wrapStore(store, ({ args, actWith }) => actWith(mask.value(args)));
}
