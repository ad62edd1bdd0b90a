import { clientCalls } from './client-calls.js';
import { isObject,                 } from './json.js';

/** Why a call of an aborted run has no result of its own, in the result that it gets. */
export const abortedWhy = 'the run was aborted';

/** The notes that decide: the first says that a process died during a run, the others end one. */
export const runNotes                    = [
  'run/interrupted',
  'run/aborted',
  'run/error',
  'run/halted',
  'run/waiting',
];

/** What of an entry says whether a run is open after it. */
                    
                        
                                            
                            
                                         
 

/**
 * Returns whether a run is open after an entry: it has begun, and its end is not recorded; undefined for an entry that
 * changes nothing. Pure.
 */
export function isRunOpenAfter({ kind, name, payload, meta = {} }          )                      {
  if (kind === 'event') return runNotes.includes(name ?? '') ? name === 'run/interrupted' : undefined;
  // A run before a rewind does not continue.
  if (kind === 'rewind') return false;
  if (!isObject(payload)) return undefined;
  const isOfRun = meta.run !== undefined;
  if (kind === 'tool-result') {
    // A call of an aborted run got this result after the run's end.
    if (meta.source === 'repair' && closesAborted(payload)) return undefined;
    return isOfRun || meta.source === 'repair' ? true : undefined;
  }
  if (kind !== 'message') return undefined;
  if (payload.role === 'assistant')
    return isOfRun && (meta.partial === true || clientCalls(payload).length > 0);
  // A message that a rewind resent still needs an answer.
  return isOfRun || meta.resends !== undefined ? true : undefined;
}

function closesAborted(payload            )          {
  const { type, value } = isObject(payload.output) ? payload.output : {};
  return type === 'error-text' && String(value).endsWith(`: ${abortedWhy}.`);
}
