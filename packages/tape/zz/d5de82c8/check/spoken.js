                                             
import { parsed } from '../entry/parsed.js';
import { sourceTime } from '../entry/source-time.js';
                                               
import {               problemsOf } from './problem.js';

/** The columns of an entry that say when a message was written. */
                       
                    
                        
                      
                               
                                  
 

/** Computes the time of the newest message of a tape from its entries, to compare it with the tape's row. */
export class SpokenOnTape {
           #tape         ;
  #last                = null;
  /** An erased message may have been imported; the time at its source was erased with it. Others bound the time. */
  #isErased = false;

  constructor(tape         ) {
    this.#tape = tape;
  }

  /** Receives the entries of the tape, in order. */
  saw({ kind, at, meta, payload }             )       {
    if (kind !== 'message') return;
    if (payload === null) {
      this.#isErased = true;
      return;
    }
    const time = meta?.includes('"timestamp"') ? sourceTime(parsed(meta)) : undefined;
    this.#last = Math.max(this.#last ?? 0, time ?? at);
  }

  /** Yields a difference from the row, once all entries were seen. */
  *problems()                     {
    const { name, last_message_at } = this.#tape;
    const isBehind = (last_message_at ?? -1) < (this.#last ?? 0);
    if (this.#isErased ? !isBehind : this.#last === last_message_at) return;
    yield problemsOf(name)(
      'row-changed',
      null,
      `the row of '${name}' was changed: its last_message_at is not the time of its newest message`,
    );
  }
}
