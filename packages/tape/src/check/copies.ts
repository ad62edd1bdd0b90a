import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { parsed } from '../entry/parsed.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type Problem, problemsOf } from './problem.ts';
import { isOtherSummary } from './summaries.ts';

/** The columns of an entry that repeat what is recorded elsewhere. */
interface CopyingEntry {
  readonly seq: Seq;
  readonly kind: string;
  readonly mark: string | null;
  readonly ref: number | null;
  readonly payload: string | null;
}

/** Compares what entries repeat, as they go by, with where it is also recorded. */
export class CopiesOnTape {
  readonly #db: Db;
  readonly #tape: TapeRow;
  readonly #contradicted: Problem[] = [];

  constructor(db: Db, tape: TapeRow) {
    this.#db = db;
    this.#tape = tape;
  }

  /** Receives the entries of the tape, in order. */
  saw({ seq, kind, mark, ref, payload }: CopyingEntry): void {
    if (payload === null) return;
    if (kind === 'compaction' && isOtherSummary(this.#db, this.#tape, parsed(payload)))
      this.#report(seq, 'has another summary than its summarizer wrote');
    if (mark !== 'rewind' && mark !== 'redaction') return;
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
