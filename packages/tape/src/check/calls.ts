import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { parsed } from '../entry/parsed.ts';
import { nextBatch, type OpenBatch } from '../tape/open-calls.ts';
import type { TapeRow } from '../tape/tape.ts';
import type { BatchRow } from './beside.ts';
import { type Problem, problemsOf } from './problem.ts';

/** The columns of an entry that open and close batches of calls. */
export interface CallEntry {
  readonly seq: Seq;
  readonly kind: string;
  readonly payload: string | null;
}

/**
 * Computes the open calls of a tape from its entries, to compare them with the stored rows. The calls of an
 * erased message cannot be read any more: the stored row of the closed batch that it lies in is the only source.
 */
export class CallsOnTape {
  readonly #tape: TapeRow;
  readonly #stored: readonly BatchRow[];
  readonly #found = new Map<Seq, BatchRow>();
  #batch: OpenBatch | undefined;
  /** How many results of the open batch are erased. */
  #unknown: { readonly from: Seq; readonly n: number } | undefined;
  /** Last position of a batch that is taken from the stored rows. */
  #takenTo: Seq = 0;

  /**
   * @param stored its rows in `open_calls`, in order
   * @param open the batch before the first entry that it will see, and how many results in it are erased
   */
  constructor(
    tape: TapeRow,
    stored: readonly BatchRow[],
    open?: { readonly batch: OpenBatch; readonly unknown: number },
  ) {
    this.#tape = tape;
    this.#stored = stored;
    if (open === undefined) return;
    this.#batch = open.batch;
    this.#unknown = { from: open.batch.from, n: open.unknown };
  }

  /** Receives the entries of the tape, in order. */
  saw({ seq, kind, payload }: CallEntry): void {
    if (seq <= this.#takenTo) return;
    if (kind !== 'message' && kind !== 'tool-result' && kind !== 'rewind') return;
    if (payload === null && kind !== 'rewind') {
      this.#take(seq, kind);
      return;
    }
    if (kind === 'message' && payload?.includes('"tool-call"') !== true) return;
    if (kind !== 'message' && this.#batch === undefined) return;
    const next = nextBatch(this.#batch, { seq, kind, payload: parsed(payload) });
    if (next === this.#batch) return;
    const now = kind === 'tool-result' && this.#isAnswered(next) ? undefined : next;
    const from = (now ?? this.#batch)?.from ?? seq;
    this.#batch = now;
    this.#found.set(from, {
      from_seq: from,
      to_seq: now === undefined ? seq - 1 : null,
      calls: JSON.stringify(now?.calls ?? []),
    });
  }

  /** Takes the stored batch that an erased entry lies in. An erased entry in none had no calls. */
  #take(seq: Seq, kind: string): void {
    const row = this.#stored.find(
      ({ from_seq, to_seq }) => to_seq !== null && from_seq < seq && seq <= to_seq + 1,
    );
    if (row === undefined) {
      // Whose result it is, is not known: the last one ends the batch, whichever calls are left.
      if (kind === 'tool-result') this.#settleUnknown(seq);
      return;
    }
    this.#batch = undefined;
    this.#found.set(row.from_seq, row);
    this.#takenTo = (row.to_seq ?? seq) + 1;
  }

  #settleUnknown(seq: Seq): void {
    if (this.#batch === undefined) return;
    const { from } = this.#batch;
    this.#unknown = { from, n: 1 + (this.#unknown?.from === from ? this.#unknown.n : 0) };
    if (!this.#isAnswered(this.#batch)) return;
    this.#batch = undefined;
    this.#found.set(from, { from_seq: from, to_seq: seq - 1, calls: '[]' });
  }

  /** Whether as many results of a batch are erased as it has open calls. */
  #isAnswered(batch: OpenBatch | undefined): boolean {
    return batch !== undefined && this.#unknown?.from === batch.from && this.#unknown.n >= batch.calls.length;
  }

  /** The position up to which a tape that ends at a head is settled, by the entries seen so far. */
  settledAt(head: Seq): Seq {
    return this.#batch?.from ?? head;
  }

  /** The rows that follow from the entries seen so far. */
  rows(): readonly BatchRow[] {
    return [...this.#found.values()];
  }

  /** Yields the differences from the stored rows, once all entries were seen. */
  *problems(): Generator<Problem> {
    const { name, head_seq, settled_seq } = this.#tape;
    const problem = problemsOf(name);
    if (textOf(this.#stored) !== textOf(this.rows()))
      yield problem(
        'open-calls-differ',
        null,
        `the recorded open calls of '${name}' differ from its entries`,
      );
    const settled = this.settledAt(head_seq);
    if (settled !== settled_seq)
      yield problem(
        'row-changed',
        null,
        `the row of '${name}' was changed: its settled_seq is ${settled_seq}, and the entries are settled up to ${settled}`,
      );
  }
}

function textOf(rows: readonly BatchRow[]): string {
  return JSON.stringify(rows.map(({ from_seq, to_seq, calls }) => [from_seq, to_seq, calls]));
}

/**
 * Rebuilds a tape's rows in `open_calls` from its entries, in the caller's transaction. Those of erased messages stay.
 * Returns the position up to which the tape is settled.
 */
export function rebuildBatches(db: Db, tape: TapeRow): Seq {
  const stored = db.all<BatchRow>(
    'SELECT from_seq, to_seq, calls FROM open_calls WHERE tape_id = @id ORDER BY from_seq',
    { id: tape.id },
  );
  const calls = new CallsOnTape(tape, stored);
  for (let after = tape.base_seq; ; ) {
    const rows = db.all<CallEntry>(
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
  return calls.settledAt(tape.head_seq);
}
