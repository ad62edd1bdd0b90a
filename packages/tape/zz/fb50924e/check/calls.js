                                             
import { parsed } from '../entry/parsed.js';
                                              
import { nextBatch,                } from '../tape/open-calls.js';
                                               
import {               problemsOf } from './problem.js';

/** The columns of an entry that open and close batches of calls. */
                            
                    
                        
                                  
 

                    
                         
                              
                         
 

/**
 * Computes the open calls of a tape from its entries, to compare them with the stored rows. The calls of an
 * erased message cannot be read any more: the stored row of the closed batch that it lies in is the only source.
 */
export class CallsOnTape {
           #tape         ;
           #stored                     ;
           #found = new Map               ();
  #batch                       ;
  /** Last position of a batch that is taken from the stored rows. */
  #takenTo      = 0;

  constructor(db    , tape         ) {
    this.#tape = tape;
    this.#stored = db.all          (
      'SELECT from_seq, to_seq, calls FROM open_calls WHERE tape_id = @id ORDER BY from_seq',
      { id: tape.id },
    );
  }

  /** Receives the entries of the tape, in order. */
  saw({ seq, kind, payload }           )       {
    if (seq <= this.#takenTo) return;
    if (kind !== 'message' && kind !== 'tool-result' && kind !== 'rewind') return;
    if (payload === null) {
      this.#take(seq);
      return;
    }
    if (kind === 'message' && !payload.includes('"tool-call"')) return;
    if (kind !== 'message' && this.#batch === undefined) return;
    const now = nextBatch(this.#batch, { seq, kind, payload: parsed(payload) });
    if (now === this.#batch) return;
    const from = (now ?? this.#batch)?.from ?? seq;
    this.#batch = now;
    this.#found.set(from, {
      from_seq: from,
      to_seq: now === undefined ? seq - 1 : null,
      calls: JSON.stringify(now?.calls ?? []),
    });
  }

  /** Takes the stored batch that an erased entry lies in. An erased entry in none had no calls. */
  #take(seq     )       {
    const row = this.#stored.find(
      ({ from_seq, to_seq }) => to_seq !== null && from_seq < seq && seq <= to_seq + 1,
    );
    if (row === undefined) return;
    this.#batch = undefined;
    this.#found.set(row.from_seq, row);
    this.#takenTo = (row.to_seq ?? seq) + 1;
  }

  /** The rows that follow from the entries seen so far. */
  rows()                      {
    return [...this.#found.values()];
  }

  /** Yields the differences from the stored rows, once all entries were seen. */
  *problems()                     {
    const { name, head_seq, settled_seq } = this.#tape;
    const problem = problemsOf(name);
    if (JSON.stringify(this.#stored) !== JSON.stringify(this.rows()))
      yield problem(
        'open-calls-differ',
        null,
        `the recorded open calls of '${name}' differ from its entries`,
      );
    const settled = this.#batch?.from ?? head_seq;
    if (settled !== settled_seq)
      yield problem(
        'row-changed',
        null,
        `the row of '${name}' was changed: its settled_seq is ${settled_seq}, and the entries are settled up to ${settled}`,
      );
  }
}

/**
 * Rebuilds a tape's rows in `open_calls` from its entries, in the caller's transaction. Those of erased messages stay.
 */
export function rebuildBatches(db    , tape         )       {
  const calls = new CallsOnTape(db, tape);
  for (let after = tape.base_seq; ; ) {
    const rows = db.all           (
      `SELECT seq, kind, payload FROM entry WHERE tape_id = @id AND seq > @after
         AND kind IN ('message', 'tool-result', 'rewind') ORDER BY seq LIMIT 500`,
      { id: tape.id, after },
    );
    for (const row of rows) calls.saw(row);
    if (rows.length < 500) break;
    after = rows.at(-1)?.seq ?? after;
  }
  db.run('DELETE FROM open_calls WHERE tape_id = @id', { id: tape.id });
  for (const { from_seq, to_seq, calls: open } of calls.rows())
    db.run('INSERT INTO open_calls (tape_id, from_seq, to_seq, calls) VALUES (@id, @from, @to, @open)', {
      id: tape.id,
      from: from_seq,
      to: to_seq,
      open,
    });
}
