import type { Db } from '../db/db.ts';
import { addCall, type CallsRow, type StoredCall, saveCalls, storedCall } from '../tape/calls.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type Problem, problemsOf } from './problem.ts';

/** Adds up the model calls of a tape from its entries, to compare them with the stored rows. */
export class UsageOnTape {
  readonly #found = new Map<string, CallsRow>();

  /** Receives the entries of the tape, in order. */
  saw(entry: StoredCall): void {
    if (entry.kind !== 'message' && entry.kind !== 'compaction') return;
    const call = storedCall(entry);
    if (call === undefined) return;
    const { model = '' } = call;
    this.#found.set(model, addCall(this.#found.get(model), entry.seq, call));
  }

  /** The rows that follow from the entries seen so far, in the order of first use. */
  rows(): readonly CallsRow[] {
    return [...this.#found.values()];
  }

  /** Yields a difference from the stored rows, once all entries were seen. */
  *problems({ name }: TapeRow, stored: readonly CallsRow[]): Generator<Problem> {
    const found = this.rows();
    if (stored.length === found.length && stored.every((row, n) => isSame(row, found[n]))) return;
    yield problemsOf(name)(
      'usage-differs',
      null,
      `the recorded usage of '${name}' differs from the model calls of its entries`,
    );
  }
}

/** Whether two rows are the same. The sums of a redacted tape are differences, which round otherwise. */
function isSame(stored: CallsRow, found: CallsRow | undefined): boolean {
  if (found === undefined || stored.model !== found.model) return false;
  return numbers.every((column) => isClose(Number(stored[column]), Number(found[column])));
}

const numbers = [
  'first_seq',
  'steps',
  'input',
  'output',
  'reasoning',
  'cache_read',
  'cache_write',
  'cost',
  'last_seq',
  'last_tokens',
] as const;

function isClose(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));
}

/** Adds up the calls of a tape anew from its entries, in the caller's transaction. */
export function rebuildUsage(db: Db, { id }: Pick<TapeRow, 'id'>): void {
  const usage = new UsageOnTape();
  for (let after = -1; ; ) {
    const rows = db.all<StoredCall>(
      `SELECT seq, kind, payload, meta FROM entry WHERE tape_id = @id AND seq > @after
         AND kind IN ('message', 'compaction') ORDER BY seq LIMIT 500`,
      { id, after },
    );
    for (const row of rows) usage.saw(row);
    if (rows.length < 500) break;
    after = rows.at(-1)?.seq ?? after;
  }
  db.run('DELETE FROM usage WHERE tape_id = @id', { id });
  saveCalls(db, id, usage.rows());
}
