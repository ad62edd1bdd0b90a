                                               
                                                       
import { redactedCall } from './redacted-call.js';
                                            
import { wrapStore } from './wrap.js';

/**
 * A store that replaces secrets in all that its methods are given, before it is hashed and written: those of the mask
 * by their names, and with a redactor also those that have the form of one. What is on its tapes already stays as it is.
 */
export function maskedStore                         (
  store       ,
  mask                  ,
  redactor           ,
)        {
  if (mask === undefined && redactor === undefined) return store;
  return wrapStore(store, ({ method, args, actWith }) => {
    const masked = mask === undefined ? args : mask.value(args);
    return actWith(redactor === undefined ? masked : redactedCall(masked, redactor, method));
  });
}
