import type { Db } from '../db/db.ts';
import { countedOf } from '../entry/call.ts';
import type { Seq } from '../entry/entry.ts';
import { parsed } from '../entry/parsed.ts';
import { sourceTime } from '../entry/source-time.ts';
import type { Usage } from '../entry/usage.ts';
import { type StoredCall, storedCall } from './calls.ts';
import type { TapeRow } from './tape.ts';

/** A model call that an entry records, as it counts: what sums of calls add up. */
export interface RecordedCall {
  readonly seq: Seq;
  /** When it was made, at its source where it was imported: milliseconds since the epoch. */
  readonly at: number;
  /** Absent when it is not recorded. */
  readonly model?: string;
  /** 0 for an answer that an earlier entry counted, of which this one has more. */
  readonly steps: 0 | 1;
  readonly usage: Usage;
  readonly cost?: number;
}

const pageRows = 1_000;

/** The payload of an answer can be long, and only its role counts. What the store writes of it begins with that. */
const role = `CASE WHEN substr(payload, 1, 20) = '{"role":"assistant",' THEN '{"role":"assistant"}' ELSE payload END`;

/** Reads the model calls on a tape behind a position, page by page. */
export function* recordedCalls(
  db: Db,
  { id }: Pick<TapeRow, 'id'>,
  after: Seq,
): Generator<RecordedCall, void> {
  for (let from = after; ; ) {
    const rows = db.all<StoredCall & { readonly at: number }>(
      `SELECT seq, kind, at, meta, ${role} AS payload FROM entry WHERE tape_id = @id AND seq > @from
         AND kind IN ('message', 'compaction') AND instr(meta, '"usage"') > 0 ORDER BY seq LIMIT @limit`,
      { id, from, limit: pageRows },
    );
    for (const { at, ...row } of rows) {
      const call = storedCall(row);
      if (call === undefined) continue;
      const { model, cost } = call;
      yield {
        seq: row.seq,
        at: sourceTime(parsed(row.meta)) ?? at,
        ...(model !== undefined && { model }),
        ...countedOf(call),
        ...(cost !== undefined && { cost }),
      };
    }
    if (rows.length < pageRows) return;
    from = rows.at(-1)?.seq ?? from;
  }
}
