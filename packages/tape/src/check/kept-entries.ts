import type { Db } from '../db/db.ts';
import { PageSize } from '../db/page-size.ts';
import type { Seq } from '../entry/entry.ts';
import type { ChainLink } from '../entry/hash.ts';
import { isReadable } from './readable.ts';

/**
 * The columns of `entry` that the chain covers. Salt and hashes are hex: buffers would cost more than
 * hashing.
 */
export interface EntryRow extends ChainLink {
  readonly id: number;
  readonly v: number;
  readonly epoch: number;
  readonly salt: string | null;
  readonly body_hash: string;
  readonly hash: string;
  readonly meta: string | null;
  readonly payload: string | null;
  /** Whether payload and meta can be read, see `isReadable`. */
  readonly is_readable: number;
}

/** The columns of an `EntryRow`. */
export const entryColumns: string = `id, v, epoch, seq, kind, mark, name, ref, at, key, meta, payload,
  lower(hex(body_hash)) AS body_hash, lower(hex(hash)) AS hash, CASE WHEN salt IS NOT NULL THEN lower(hex(salt)) END AS salt,
  ${isReadable} AS is_readable`;

/** The most entries and characters of payloads of one run of tapes that are kept. */
const most = { entries: 4_000, characters: 8_000_000 };

/** The entries of short tapes that are verified together: read once, since tapes refer to entries of each other. */
export class KeptEntries {
  readonly #byTape = new Map<number, EntryRow[]>();

  /** Reads the entries of the tapes of a run, as far as they are few and small; keeps none of the others. */
  constructor(db: Db, { first, last }: { readonly first: number; readonly last: number }) {
    const byTape = this.#byTape;
    let [entries, characters] = [0, 0];
    let at: { readonly tape_id: number; readonly seq: Seq } = { tape_id: first, seq: -Infinity };
    const size = new PageSize(db);
    for (;;) {
      const limit = size.next();
      const rows = db.all<EntryRow & { readonly tape_id: number }>(
        `SELECT tape_id, ${entryColumns} FROM entry WHERE (tape_id, seq) > (@tape_id, @seq) AND tape_id <= @last
           ORDER BY tape_id, seq LIMIT @limit`,
        { ...at, last, limit },
      );
      size.took(rows);
      for (const row of rows) {
        const own = byTape.get(row.tape_id);
        if (own === undefined) byTape.set(row.tape_id, [row]);
        else own.push(row);
        characters += (row.payload?.length ?? 0) + (row.meta?.length ?? 0);
      }
      entries += rows.length;
      const end = rows.at(-1);
      if (end === undefined || rows.length < limit) return;
      at = { tape_id: end.tape_id, seq: end.seq };
      if (entries >= most.entries || characters >= most.characters) break;
    }
    // The tape at which the reading stopped is not whole.
    byTape.delete(at.tape_id);
  }

  /** All entries of a tape, in order; undefined when they are not kept. */
  of(tape: number): readonly EntryRow[] | undefined {
    return this.#byTape.get(tape);
  }

  /** An entry of a tape; undefined when it is not kept, or does not exist. */
  at(tape: number, seq: Seq): EntryRow | undefined {
    const rows = this.#byTape.get(tape);
    const [first] = rows ?? [];
    if (rows === undefined || first === undefined) return undefined;
    const row = rows[seq - first.seq];
    return row?.seq === seq ? row : rows.find((one) => one.seq === seq);
  }
}
