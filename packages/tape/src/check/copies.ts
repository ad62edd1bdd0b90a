import type { Seq } from '../entry/entry.ts';
import type { TapeRow } from '../tape/tape.ts';
import { parsed } from './parsed.ts';
import { type Problem, problemsOf } from './problem.ts';

/** The columns of an entry that repeat what is recorded elsewhere. */
interface CopyingEntry {
  readonly seq: Seq;
  readonly mark: string | null;
  readonly ref: number | null;
  readonly payload: string | null;
}

/** Compares what entries repeat, as they go by, with where it is also recorded. */
export class CopiesOnTape {
  readonly #tape: TapeRow;
  readonly #contradicted: Problem[] = [];

  constructor(tape: TapeRow) {
    this.#tape = tape;
  }

  /** Receives the entries of the tape, in order. */
  saw({ seq, mark, ref, payload }: CopyingEntry): void {
    if (payload === null || (mark !== 'rewind' && mark !== 'redaction')) return;
    const target = parsed(payload)[mark === 'rewind' ? 'to' : 'seq'];
    if (target !== ref) this.#report(seq, `refers to @${ref}, and its content names @${String(target)}`);
  }

  #report(seq: Seq, why: string): void {
    const { name } = this.#tape;
    this.#contradicted.push(problemsOf(name)('record-contradicted', seq, `${name}@${seq} ${why}`));
  }

  /** Yields what contradicts the entries, once all were seen. */
  *problems(): Generator<Problem> {
    yield* this.#contradicted;
  }
}
