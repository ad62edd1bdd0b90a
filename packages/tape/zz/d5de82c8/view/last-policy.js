                                               
import { remakeOf } from './manifest.js';
                                              

/** How many messages back the last model call is searched. */
export const lastCallWithin = 50;

/** The policy of the last model call among the last messages of a session, which a configuration may set. */
export function lastPolicy(messages                                )             {
  const call = messages.findLast(({ meta }) => remakeOf(meta.view) !== undefined);
  return remakeOf(call?.meta.view)?.policy ?? 'last-boundary';
}
