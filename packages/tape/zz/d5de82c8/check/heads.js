                                             
                                               
import {               problemsOf } from './problem.js';
                                                        

/**
 * Compares the entries of a tape with the heads that were recorded of it: a rewritten history, whose hashes were
 * all computed again, still differs from them, and a tail that was cut off is missing from it.
 */
export class HeadsOnTape {
           #tape         ;
  /** Recorded heads by position, and those without a position by hash. */
           #at = new Map                     ();
           #anywhere = new Map                        ();
           #contradicted            = [];

  /** @param to the last position that will be seen */
  constructor(tape         , recorded                         , to     ) {
    this.#tape = tape;
    const isWhole = to === tape.head_seq;
    for (const head of recorded) {
      if (head.seq === null) {
        // Of a part, nothing says whether the entry lies in it.
        if (isWhole) push(this.#anywhere, head.hash, head);
      } else if (isWhole || head.seq <= to) push(this.#at, head.seq, head);
    }
  }

  /** Receives the positions and hashes (hex) of the entries, in order. */
  saw({ seq, hash }                                              )       {
    if (this.#anywhere.size > 0) this.#anywhere.delete(hash);
    const others = this.#at.get(seq)?.filter((head) => head.hash !== hash);
    if (others === undefined || others.length === 0) return;
    const { name } = this.#tape;
    this.#contradicted.push(
      problemsOf(name)(
        'head-contradicted',
        seq,
        `${name}@${seq} has the hash ${short(hash)}; ${recordedBy(others)}: an entry up to there was rewritten`,
      ),
    );
  }

  /**
   * Yields what contradicts the entries, once all were seen.
   * @param isChained false where the chain is broken or has a gap, which was reported: a recorded head that no
   * entry has says no more then
   */
  *problems({ isChained }                                 )                     {
    yield* this.#contradicted;
    const { name, head_seq } = this.#tape;
    const problem = problemsOf(name);
    const later = [...this.#at].filter(([seq]) => seq > head_seq).flatMap(([, heads]) => heads);
    if (later.length > 0) {
      const last = later.reduce((most, { seq }) => Math.max(most, seq ?? 0), 0);
      yield problem(
        'tail-missing',
        head_seq + 1,
        `${name} ends at ${head_seq}, but it once went on to ${last}; ${recordedBy(later)}: its tail was cut off`,
      );
    }
    const lost = [...this.#anywhere.values()].flat();
    if (lost.length > 0 && isChained)
      yield problem(
        'head-contradicted',
        null,
        `no entry of ${name} has a head that was recorded of it; ${recordedBy(lost)}: its tail was cut off, or an entry was rewritten`,
      );
  }
}

/** Names what recorded the heads: the first three. */
function recordedBy(heads                         )         {
  const shown = heads.slice(0, 3).map(({ by, hash }) => `${by} recorded ${short(hash)}`);
  const more = heads.length > 3 ? `, and ${heads.length - 3} more` : '';
  return `${shown.join(', ')}${more}`;
}

function short(hash        )         {
  return hash.slice(0, 8);
}

function push     (map                          , key     , head              )       {
  const heads = map.get(key);
  if (heads === undefined) map.set(key, [head]);
  else heads.push(head);
}
