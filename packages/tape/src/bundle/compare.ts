import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { entryText, sha256 } from '../entry/hash.ts';
import type { Writer } from '../tape/append.ts';
import type { TapeRow } from '../tape/tape.ts';
import { badBundle } from './bundle.ts';
import { Cast } from './cast.ts';
import { fillEntry } from './fill.ts';
import { entriesFrom, type Place } from './records.ts';
import type { BundledTape } from './scan.ts';
import type { Quarantine } from './unpack.ts';

/** How far a session of a bundle and the one here are the same. */
export interface Compared {
  /** The last position that both have. */
  readonly common: Seq;
  /** The first position at which they differ, and the hash of the bundle's entry there. */
  readonly divergedAt?: Seq;
  readonly other?: string;
  /** Where the entries begin that are not here. */
  readonly resume: Place;
  /** How many entries got their content, which was not here before. */
  readonly filled: number;
}

/**
 * Compares each entry of a session with the one here. Where content is not here, and the bundle has it, puts it there.
 * @throws TAPE_BAD_BUNDLE for an entry that does not have its hash: that of one that is here is not verified later
 */
export function compareTape(
  writer: Writer,
  file: Quarantine,
  {
    bundled: { tape, start, from },
    row,
    cast,
  }: {
    readonly bundled: BundledTape;
    readonly row: TapeRow;
    /** The bundle's entries under another id. */
    readonly cast?: { readonly ulid: string; readonly previous: string };
  },
): Compared {
  const own = new OwnHashes(writer.db, row);
  const casting = cast === undefined ? undefined : new Cast(cast.ulid, cast.previous);
  let common = start.after;
  let previous = start.after_hash;
  let filled = 0;
  for (const one of entriesFrom(file, { from, after: start.after })) {
    const { entry } = one;
    if (entry.seq > row.head_seq) return { common, resume: one.from, filled };
    previous = sha256(entryText(tape.ulid, entry, entry.body, previous));
    if (previous !== entry.hash)
      throw badBundle(file.name, one.at.number, `position ${entry.seq} does not have its hash`);
    const here = own.at(entry.seq);
    if (here?.hash !== (casting?.of(entry) ?? entry).hash)
      return { common, divergedAt: entry.seq, other: entry.hash, resume: one.from, filled };
    common = entry.seq;
    if (
      here.isAbsent === 1 &&
      entry.payload !== null &&
      fillEntry(writer, file, { bundled: one, tape: row.id, id: here.id })
    )
      filled += 1;
  }
  return { common, resume: from, filled };
}

interface OwnHash {
  readonly id: number;
  readonly seq: Seq;
  readonly hash: string;
  readonly isAbsent: 0 | 1;
}

const pageRows = 1_000;

/** Reads the hashes of the entries of a tape in order, page by page. */
class OwnHashes {
  readonly #db: Db;
  readonly #tape: TapeRow;
  #page: readonly OwnHash[] = [];

  constructor(db: Db, tape: TapeRow) {
    this.#db = db;
    this.#tape = tape;
  }

  at(seq: Seq): OwnHash | undefined {
    const first = this.#page[0]?.seq ?? Number.POSITIVE_INFINITY;
    if (seq < first || seq >= first + this.#page.length)
      this.#page = this.#db.all<OwnHash>(
        `SELECT e.id, e.seq, lower(hex(e.hash)) AS hash, e.payload IS NULL AND a.seq IS NOT NULL AS isAbsent
           FROM entry e LEFT JOIN absent a ON a.tape_id = e.tape_id AND a.seq = e.seq
           WHERE e.tape_id = @id AND e.seq >= @seq ORDER BY e.seq LIMIT @limit`,
        { id: this.#tape.id, seq, limit: pageRows },
      );
    return this.#page[seq - (this.#page[0]?.seq ?? 0)];
  }
}
