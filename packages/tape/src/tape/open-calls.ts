import type { Db } from '../db/db.ts';
import { clientCalls } from '../entry/client-calls.ts';
import type { EntryKind, Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import type { Interval, Segment } from './interval.ts';

/**
 * The client-side tool calls that are open at the end of a tape, and the position before the first of them. A
 * batch begins with the assistant message that makes the calls and ends with the last result. No fork, merge
 * or rewind cuts inside it.
 */
export interface OpenBatch {
  readonly from: Seq;
  readonly calls: readonly string[];
}

/** Returns the open batch after an entry; `undefined` when all calls are settled. Pure. */
export function nextBatch(
  open: OpenBatch | undefined,
  entry: { readonly seq: Seq; readonly kind: EntryKind; readonly payload: unknown },
): OpenBatch | undefined {
  if (entry.kind === 'rewind') return undefined;
  if (entry.kind === 'message') {
    const started = clientCalls(entry.payload);
    if (started.length === 0) return open;
    return { from: open?.from ?? entry.seq - 1, calls: [...(open?.calls ?? []), ...started] };
  }
  if (entry.kind !== 'tool-result' || open === undefined || !isObject(entry.payload)) return open;
  // Some servers give two calls of one answer the same id: each result settles one of them.
  const settled = open.calls.indexOf(String(entry.payload.toolCallId));
  if (settled === -1) return open;
  const calls = open.calls.toSpliced(settled, 1);
  return calls.length === 0 ? undefined : { from: open.from, calls };
}

/** Returns the batch that is open at a tape's head. */
export function loadBatch(db: Db, tapeId: number): OpenBatch | undefined {
  const row = db.get<{ from_seq: Seq; to_seq: Seq | null; calls: string }>(
    'SELECT from_seq, to_seq, calls FROM open_calls WHERE tape_id = @tapeId ORDER BY from_seq DESC LIMIT 1',
    { tapeId },
  );
  if (row === undefined || row.to_seq !== null) return undefined;
  return { from: row.from_seq, calls: JSON.parse(row.calls) as string[] };
}

const batchRows = 200;

/** Yields the positions of a segment that lie in batches, batch by batch, from its beginning or from its end. */
export function* batchesIn(db: Db, { tapeId, lo, hi }: Segment, order: 'ASC' | 'DESC'): Generator<Interval> {
  // The newest batch that begins before the first position can contain it.
  const { first = lo } =
    db.get<{ first: Seq }>(
      'SELECT from_seq AS first FROM open_calls WHERE tape_id = @tapeId AND from_seq <= @lo ORDER BY from_seq DESC LIMIT 1',
      { tapeId, lo },
    ) ?? {};
  for (let [from, to] = [first, hi]; ; ) {
    const rows = db.all<{ from_seq: Seq; to_seq: Seq | null }>(
      `SELECT from_seq, to_seq FROM open_calls WHERE tape_id = @tapeId AND from_seq >= @from AND from_seq < @to
         ORDER BY from_seq ${order} LIMIT @limit`,
      { tapeId, from, to, limit: batchRows },
    );
    for (const { from_seq, to_seq } of rows) {
      const batch = { lo: Math.max(lo, from_seq), hi: Math.min(hi, to_seq ?? hi) };
      if (batch.lo < batch.hi) yield batch;
    }
    const last = rows.at(-1)?.from_seq;
    if (last === undefined || rows.length < batchRows) return;
    if (order === 'ASC') from = last + 1;
    else to = last;
  }
}

/**
 * Records how the entries of an append change the batch. The rows can be rebuilt from the entries. A batch that ends in the
 * same append is written once, as it ended.
 */
export class BatchRows {
  readonly #db: Db;
  readonly #tapeId: number;
  /** The row that the last change belongs to, not yet written. */
  #row: readonly [from: Seq, to: Seq | null, calls: string] | undefined;

  constructor(db: Db, tapeId: number) {
    this.#db = db;
    this.#tapeId = tapeId;
  }

  /** Notes what an entry at `seq` made of the batch. */
  change(seq: Seq, { was, now }: { was: OpenBatch | undefined; now: OpenBatch | undefined }): void {
    if (was === now) return;
    if (was === undefined) this.save();
    const from = (now ?? was)?.from ?? seq;
    this.#row = [from, now === undefined ? seq - 1 : null, JSON.stringify(now?.calls ?? [])];
  }

  /** Writes what was noted. */
  save(): void {
    if (this.#row === undefined) return;
    this.#db.run(
      `INSERT INTO open_calls (tape_id, from_seq, to_seq, calls) VALUES (?, ?, ?, ?)
         ON CONFLICT (tape_id, from_seq) DO UPDATE SET to_seq = excluded.to_seq, calls = excluded.calls`,
      [this.#tapeId, ...this.#row],
    );
    this.#row = undefined;
  }
}
