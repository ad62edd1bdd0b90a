                                             
import { parsed } from '../entry/parsed.js';
                                              
                                               
import {               problemsOf } from './problem.js';
import { isOtherSummary } from './summaries.js';

/** The columns of an entry that repeat what is recorded elsewhere. */
                        
                    
                        
                               
                              
                                  
 

/** Compares what entries repeat, as they go by, with where it is also recorded. */
export class CopiesOnTape {
           #db    ;
           #tape         ;
           #contradicted            = [];

  constructor(db    , tape         ) {
    this.#db = db;
    this.#tape = tape;
  }

  /** Receives the entries of the tape, in order. */
  saw({ seq, kind, mark, ref, payload }              )       {
    if (payload === null) return;
    if (kind === 'compaction' && isOtherSummary(this.#db, this.#tape, parsed(payload)))
      this.#report(seq, 'has another summary than its summarizer wrote');
    if (mark !== 'rewind' && mark !== 'redaction') return;
    const target = parsed(payload)[mark === 'rewind' ? 'to' : 'seq'];
    if (target !== ref) this.#report(seq, `refers to @${ref}, and its content names @${String(target)}`);
  }

  #report(seq     , why        )       {
    const { name } = this.#tape;
    this.#contradicted.push(problemsOf(name)('record-contradicted', seq, `${name}@${seq} ${why}`));
  }

  /** Yields what contradicts the entries, once all were seen. */
  *problems()                     {
    yield* this.#contradicted;
  }
}
