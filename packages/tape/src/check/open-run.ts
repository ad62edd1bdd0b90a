import { parsed } from '../entry/parsed.ts';
import { isRunOpenAfter, runNotes } from '../entry/run-state.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { isRunOpen } from '../tape/open-run.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type Problem, problemsOf } from './problem.ts';

/** The columns of an entry that open and end runs. */
interface RunEntry {
  readonly kind: string;
  readonly name: string | null;
  readonly payload: string | null;
  readonly meta: string | null;
}

/** Computes from the entries of a tape whether its last run is open, to compare it with the row in `open_run`. */
export class RunOnTape {
  #last: RunEntry | undefined;

  /** Receives the entries of the tape, in order. */
  saw(entry: RunEntry): void {
    const { kind, name } = entry;
    const mayDecide = kind === 'event' ? runNotes.includes(name ?? '') : deciding.has(kind);
    if (mayDecide) this.#last = entry;
  }

  /** Yields a difference from the row, once all entries were seen. */
  *problems(db: Db, { id, name }: TapeRow, isRecorded: boolean): Generator<Problem> {
    if (isRecorded === this.#isOpen(db, id)) return;
    const why = isRecorded ? 'is recorded as open, and its entries end it' : 'is open, and not recorded so';
    yield problemsOf(name)('open-run-differs', null, `the last run of '${name}' ${why}`);
  }

  #isOpen(db: Db, id: number): boolean {
    if (this.#last === undefined) return false;
    const { kind, name, payload, meta } = this.#last;
    // Usually the last entry decides, and no other needs to be read again.
    return isRunOpenAfter({ kind, name, payload: parsed(payload), meta: parsed(meta) }) ?? isRunOpen(db, id);
  }
}

const deciding: ReadonlySet<string> = new Set(['rewind', 'message', 'tool-result']);
