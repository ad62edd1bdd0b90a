import type { Db } from '../db/db.ts';
import { isRunOpenAfter, runNotes } from '../entry/run-state.ts';
import { isRunOpen } from '../tape/open-run.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { BesideTapes } from './beside.ts';
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
  *problems(db: Db, { id, name }: TapeRow, tapes: BesideTapes): Generator<Problem> {
    const isRecorded = tapes.of(id).isRunRecorded;
    if (isRecorded === this.#isOpen(db, id, tapes)) return;
    const why = isRecorded ? 'is recorded as open, and its entries end it' : 'is open, and not recorded so';
    yield problemsOf(name)('open-run-differs', null, `the last run of '${name}' ${why}`);
  }

  #isOpen(db: Db, id: number, tapes: BesideTapes): boolean {
    if (this.#last === undefined) return false;
    const isOpenAfter = ({ kind, name, payload, meta }: RunEntry) =>
      isRunOpenAfter({ kind, name, payload: tapes.parsed(payload), meta: tapes.parsed(meta) });
    // Usually the last entry decides, and no other needs to be read again.
    const last = isOpenAfter(this.#last);
    if (last !== undefined) return last;
    const kept = tapes.entries?.of(id);
    if (kept === undefined) return isRunOpen(db, id);
    for (const entry of kept.toReversed()) {
      const isOpen = isOpenAfter(entry);
      if (isOpen !== undefined) return isOpen;
    }
    return false;
  }
}

const deciding: ReadonlySet<string> = new Set(['rewind', 'message', 'tool-result']);
