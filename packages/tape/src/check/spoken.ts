import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { importedEvent } from '../entry/import-source.ts';
import { parsed } from '../entry/parsed.ts';
import { sourceTime, spokenTime } from '../entry/source-time.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type Problem, problemsOf } from './problem.ts';

/** The columns of an entry that say when a message was written. */
interface SpokenEntry {
  readonly seq: Seq;
  readonly kind: string;
  readonly name: string | null;
  readonly at: number;
  readonly meta: string | null;
  readonly payload: string | null;
}

/** Computes the time of the newest message of a tape from its entries, to compare it with the tape's row. */
export class SpokenOnTape {
  readonly #tape: TapeRow;
  #last: number | null = null;
  /** An erased message may have been imported; the time at its source was erased with it. Others bound the time. */
  #isErased = false;
  #lastErased: number | null = null;

  constructor(tape: TapeRow) {
    this.#tape = tape;
  }

  /** Receives the entries of the tape, in order. */
  saw({ kind, name, at, meta, payload }: SpokenEntry): void {
    const isMessage = kind === 'message';
    if (!isMessage && name !== importedEvent) return;
    if (payload === null) {
      this.#isErased = true;
      if (isMessage) this.#lastErased = Math.max(this.#lastErased ?? 0, at);
      return;
    }
    const sourceAt = meta?.includes('"timestamp"') ? sourceTime(parsed(meta)) : undefined;
    const time = spokenTime({ kind, name, at, sourceAt });
    if (time !== undefined) this.#last = Math.max(this.#last ?? 0, time);
  }

  /** The time that follows from the entries seen so far; an erased message counts as of when it was recorded. */
  get found(): number | null {
    if (this.#lastErased === null) return this.#last;
    return Math.max(this.#last ?? 0, this.#lastErased);
  }

  /** Yields a difference from the row, once all entries were seen. */
  *problems(): Generator<Problem> {
    const { name, last_message_at } = this.#tape;
    const isBehind = this.#last !== null && (last_message_at ?? -1) < this.#last;
    if (this.#isErased ? !isBehind : this.#last === last_message_at) return;
    yield problemsOf(name)(
      'row-changed',
      null,
      `the row of '${name}' was changed: its last_message_at is not the time of its newest message`,
    );
  }
}

/** Makes the time of the newest message of a tape again from its entries, in the caller's transaction. */
export function rebuildSpoken(db: Db, tape: TapeRow): void {
  const spoken = new SpokenOnTape(tape);
  for (let after = tape.base_seq; ; ) {
    const rows = db.all<SpokenEntry>(
      `SELECT seq, kind, name, at, meta, payload FROM entry WHERE tape_id = @id AND seq > @after
         AND (kind = 'message' OR name = '${importedEvent}') ORDER BY seq LIMIT 500`,
      { id: tape.id, after },
    );
    for (const row of rows) spoken.saw(row);
    if (rows.length < 500) break;
    after = rows.at(-1)?.seq ?? after;
  }
  db.run('UPDATE tape SET last_message_at = @last WHERE id = @id', { id: tape.id, last: spoken.found });
}
