/**
 * Verification of the tapes: `verify.ts` recomputes the hash chains, `heads.ts` compares them with the heads that
 * `recorded-heads.ts` finds elsewhere, `merges.ts` compares marks of merges with their messages and children,
 * `views.ts` makes recorded views again, `lineage.ts`, `aliases.ts`, `calls.ts`, `open-run.ts`, `usage.ts`, `spoken.ts` and
 * `conversation.ts` compare what is stored beside the entries, `database.ts` and `schema.ts` check the file, and `doctor.ts` finds leftovers.
 * `beside.ts` reads what these compare, for many tapes at once, and `kept-entries.ts` their entries; `problem.ts` defines the
 * result. Imports `merge`,
 * `search`, `lineage`, `tape` and what lies below them.
 */

import type { Db } from '../db/db.ts';
import { PageSize } from '../db/page-size.ts';
import { blobHashes } from '../entry/blob.ts';
import type { Seq } from '../entry/entry.ts';
import { bodyText, entryText, genesisHash, hex, sha256 } from '../entry/hash.ts';
import { segments } from '../tape/interval.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import type { BesideTapes } from './beside.ts';
import { CallsOnTape } from './calls.ts';
import { ConversationOnTape } from './conversation.ts';
import { CopiesOnTape } from './copies.ts';
import { verifyForkStart } from './fork-start.ts';
import { HeadsOnTape } from './heads.ts';
import { type EntryRow, entryColumns } from './kept-entries.ts';
import { RunOnTape } from './open-run.ts';
import { type Problem, problemsOf, type ReportProblem } from './problem.ts';
import { recordedHeads } from './recorded-heads.ts';
import { SpokenOnTape } from './spoken.ts';
import { TouchesOnTape } from './touches.ts';
import { UsageOnTape } from './usage.ts';

/**
 * Yields the tapes to verify for a session: itself and its ancestors, each up to where the next was forked
 * from it.
 */
export function* tapesToVerify(db: Db, tape: TapeRow): Generator<{ tape: TapeRow; to: Seq }> {
  let to = tape.head_seq;
  const seen = new Set<number>();
  for (let at: TapeRow | undefined = tape; at !== undefined && !seen.has(at.id); ) {
    // A forged row can make a tape its own ancestor.
    seen.add(at.id);
    // A fork at an inherited position reads nothing of its direct parent's own entries.
    if (at === tape || to > at.base_seq) yield { tape: at, to };
    to = Math.min(at.base_seq, to);
    at = at.parent_id === null ? undefined : tapeById(db, at.parent_id);
  }
}

/**
 * Recomputes a tape's own hash chain from the stored bytes, checks its links to its parent and to its row, and
 * compares it with every head that was recorded of it, and with what is stored beside it. Each damage is reported
 * once, where it is; the check continues after it.
 * @param tapes what is beside the tape
 * @param from the first position to verify: what lies before it was verified earlier
 * @param to the last position to verify
 * @param watchers see the entries as well, which spares another reading
 */
export function* verifyTape(
  db: Db,
  tape: TapeRow,
  { tapes, from = tape.base_seq + 1, to = tape.head_seq, watchers: others }: Verified,
): Generator<Problem> {
  const isAll = from <= tape.base_seq + 1 && to === tape.head_seq;
  const beside = tapes.of(tape.id);
  const heads = new HeadsOnTape(tape, recordedHeads(db, tape, tapes), to);
  const calls = new CallsOnTape(tape, beside.batches);
  const spoken = new SpokenOnTape(tape);
  const conversation = new ConversationOnTape();
  const usage = new UsageOnTape();
  const run = new RunOnTape();
  const touches = new TouchesOnTape(db, tape, tapes);
  const copies = new CopiesOnTape(db, tape);
  const watchers = [heads, calls, spoken, conversation, usage, run, touches, copies, ...others];
  const reported = new Set<Seq | null>();
  let isChained = true;
  let isWhole = true;
  for (const problem of verifyChain(db, tape, { tapes, from, to, watchers })) {
    if (problem.code === 'row-changed' && reported.has(problem.seq)) continue;
    if (problem.code === 'entry-missing' || problem.code === 'chain-broken') isChained = false;
    if (damagesBody.has(problem.code)) isWhole = false;
    reported.add(problem.seq);
    yield problem;
  }
  for (const problem of heads.problems({ isChained: isChained && isAll }))
    if (!reported.has(problem.seq)) yield problem;
  for (const problem of [...copies.problems(), ...verifyForkStart(db, tape, tapes)])
    if (!reported.has(problem.seq)) yield problem;
  // What follows from all entries is not known of a part, nor where one is missing or another one.
  if (!isAll || !isChained) return;
  yield* calls.problems();
  yield* spoken.problems();
  yield* run.problems(db, tape, tapes);
  yield* usage.problems(tape, beside.usage);
  if (!isWhole) return;
  yield* conversation.problems(tape);
  yield* touches.problems();
}

/** Damage after which the content of an entry is not known. */
const damagesBody: ReadonlySet<Problem['code']> = new Set([
  'entry-changed',
  'body-erased',
  'database-damaged',
]);

/** What to verify of a tape, and what looks at the entries on the way. */
interface Verification {
  readonly tapes: BesideTapes;
  readonly from: Seq;
  readonly to: Seq;
  readonly watchers: readonly Watcher[];
}

type Verified = Omit<Verification, 'from' | 'to'> & Partial<Verification>;

/** Looks at each entry of a tape, in order, while its chain is verified. */
export interface Watcher {
  saw(entry: EntryRow): void;
}

function* verifyChain(
  db: Db,
  tape: TapeRow,
  { tapes, from, to, watchers }: Verification,
): Generator<Problem> {
  const problem = problemsOf(tape.name);
  const base = baseHash(db, tape, tapes);
  if (base !== hex(tape.base_hash))
    yield problem(
      'base-wrong',
      tape.base_seq,
      `${tape.name} does not continue from its parent's entry at ${tape.base_seq}`,
    );
  const before = from > tape.base_seq + 1 ? hashAt(db, tape, from - 1) : hex(tape.base_hash);
  let previous: readonly string[] = before === undefined ? [] : [before];
  let expected = from;
  let epoch = 0;
  const missing = new ContentElsewhere(db, tape);
  for (const rows of pagesOf(db, tape, { tapes, from, to }))
    for (const row of rows) {
      if (row.seq !== expected) {
        yield problem('entry-missing', expected, `${tape.name}@${expected} is missing`);
        expected = row.seq;
        previous = [];
      }
      if (isIntact(tape, row, previous)) previous = [row.hash];
      else previous = yield* verifyEntry(db, tape, { row, previous, missing, problem });
      if (row.v !== 1) yield problem('row-changed', row.seq, `the v of ${tape.name}@${row.seq} is not 1`);
      // After a wrong epoch those of later entries are wrong too.
      if (row.epoch < epoch || row.epoch > tape.epoch) {
        if (epoch !== Number.POSITIVE_INFINITY)
          yield problem('row-changed', row.seq, `the epoch of ${tape.name}@${row.seq} does not follow`);
        epoch = Number.POSITIVE_INFINITY;
      } else epoch = row.epoch;
      for (const watcher of watchers) watcher.saw(row);
      expected += 1;
    }
  if (expected !== to + 1)
    yield problem('entry-missing', expected, `${tape.name}@${expected} is missing: the head is at ${to}`);
  else if (to === tape.head_seq && !previous.includes(hex(tape.head_hash)))
    yield problem('head-wrong', to, `the recorded head of ${tape.name} is not the hash of its last entry`);
  yield* missing.problems();
  const { stray } = tapes.of(tape.id);
  if (stray !== undefined)
    yield problem('head-wrong', stray, `${tape.name}@${stray} is outside the positions of its tape`);
}

/** Knows which entries of a tape were redacted, and counts those whose content a bundle did not bring. */
class ContentElsewhere {
  readonly #db: Db;
  readonly #tape: TapeRow;
  #redacted: ReadonlySet<Seq> | undefined;
  #first: Seq | undefined;
  #count = 0;

  constructor(db: Db, tape: TapeRow) {
    this.#db = db;
    this.#tape = tape;
  }

  /** Whether a redaction of the tape names an entry. They are read once: those of a purged tape name all others. */
  isRedacted(seq: Seq): boolean {
    this.#redacted ??= new Set(
      this.#db
        .all<{ ref: Seq }>(
          `SELECT ref FROM entry WHERE tape_id = @id AND mark = 'redaction' AND ref IS NOT NULL`,
          {
            id: this.#tape.id,
          },
        )
        .map(({ ref }) => ref),
    );
    return this.#redacted.has(seq);
  }

  /** Whether the content of an entry is not here. Counts it. */
  has(seq: Seq): boolean {
    const isAbsent =
      this.#db.get('SELECT 1 FROM absent WHERE tape_id = @id AND seq = @seq', { id: this.#tape.id, seq }) !==
      undefined;
    if (isAbsent) {
      this.#first ??= seq;
      this.#count += 1;
    }
    return isAbsent;
  }

  *problems(): Generator<Problem> {
    if (this.#first === undefined) return;
    const { name } = this.#tape;
    const of = this.#count === 1 ? 'one entry' : `${this.#count} entries`;
    yield problemsOf(name)('not-here', this.#first, `the content of ${of} of '${name}' is not here`);
  }
}

function hashAt(db: Db, { id }: TapeRow, seq: Seq): string | undefined {
  return db.get<{ hash: string }>(
    'SELECT lower(hex(hash)) AS hash FROM entry WHERE tape_id = @id AND seq = @seq',
    { id, seq },
  )?.hash;
}

/** The entries of a tape in a range of positions, in pages. */
function* pagesOf(
  db: Db,
  { id }: TapeRow,
  { tapes, from, to }: Pick<Verification, 'tapes' | 'from' | 'to'>,
): Generator<readonly EntryRow[]> {
  const kept = tapes.entries?.of(id);
  if (kept !== undefined) {
    yield kept.filter(({ seq }) => seq >= from && seq <= to);
    return;
  }
  const size = new PageSize(db);
  for (let after = from - 1; after < to; ) {
    const limit = size.next();
    const rows = db.all<EntryRow>(
      `SELECT ${entryColumns} FROM entry WHERE tape_id = @id AND seq > @after AND seq <= @to ORDER BY seq LIMIT @limit`,
      { id, after, to, limit },
    );
    size.took(rows);
    yield rows;
    if (rows.length < limit) return;
    after = rows.at(-1)?.seq ?? to;
  }
}

interface Link {
  readonly row: EntryRow;
  /** Hashes that the entry may follow; empty after a gap, where no check is possible. */
  readonly previous: readonly string[];
  readonly missing: ContentElsewhere;
  readonly problem: ReportProblem;
}

/**
 * Returns whether an entry is what nearly all are: readable, without blobs, with the hashes of its body and of its
 * link. `verifyEntry` examines all others.
 */
function isIntact({ ulid }: TapeRow, row: EntryRow, previous: readonly string[]): boolean {
  const { salt, payload, meta, body_hash, hash } = row;
  const [before] = previous;
  if (salt === null || payload === null || row.is_readable === 0) return false;
  if (before === undefined || previous.length > 1 || payload.includes(blobMark)) return false;
  return (
    sha256(bodyText(salt, payload, meta)) === body_hash &&
    sha256(entryText(ulid, row, body_hash, before)) === hash
  );
}

/** What the text of every payload with blobs contains. */
const blobMark = '"type":"blob"';

/**
 * Verifies one entry; returns the hashes that the next one may follow, so that damage is not reported twice.
 */
function* verifyEntry(
  db: Db,
  tape: TapeRow,
  { row, previous, missing, problem }: Link,
): Generator<Problem, string[]> {
  const at = `${tape.name}@${row.seq}`;
  if (row.payload === null && row.meta === null && row.salt === null) {
    if (!missing.isRedacted(row.seq) && !missing.has(row.seq))
      yield problem('body-erased', row.seq, `the body of ${at} was erased without a redaction`);
  } else if (
    row.payload === null ||
    row.salt === null ||
    sha256(bodyText(row.salt, row.payload, row.meta)) !== row.body_hash
  ) {
    yield problem('entry-changed', row.seq, `the body of ${at} was changed`);
    return [row.hash];
  } else if (row.is_readable === 0)
    yield problem(
      'database-damaged',
      row.seq,
      `the stored text of ${at} is not JSON, or its meta is not an object`,
    );
  else yield* verifyBlobs(db, row, (why) => problem('blob-changed', row.seq, `the bytes of ${at} ${why}`));
  const hashes = previous.map((hash) => sha256(entryText(tape.ulid, row, row.body_hash, hash)));
  if (hashes.length === 0 || hashes.includes(row.hash)) return [row.hash];
  yield problem('chain-broken', row.seq, `${at} does not follow from the entry before it, or was changed`);
  return [row.hash, ...hashes.slice(-1)];
}

/**
 * Verifies the blobs of a payload, which names them by their hashes, and that the entry keeps them from being
 * removed.
 */
function* verifyBlobs(
  db: Db,
  { id, payload }: Pick<EntryRow, 'id' | 'payload'>,
  problem: (why: string) => Problem,
): Generator<Problem> {
  if (payload === null || !payload.includes(blobMark)) return;
  for (const hexHash of new Set(blobHashes(JSON.parse(payload)))) {
    const hash = Buffer.from(hexHash, 'hex');
    const row = db.get<{ bytes: Uint8Array }>('SELECT bytes FROM blob WHERE hash = @hash', { hash });
    if (row === undefined) yield problem(`are missing: ${hexHash}`);
    else if (sha256(row.bytes) !== hexHash) yield problem(`were changed: ${hexHash}`);
    else if (
      db.get('SELECT 1 FROM blob_ref WHERE hash = @hash AND entry_id = @id', { hash, id }) === undefined
    )
      yield problem(`are not kept for it: ${hexHash}`);
  }
}

/**
 * Returns the hash, in hex, that the first own entry must follow: a root's genesis, or the parent's entry at the base.
 */
function baseHash(db: Db, tape: TapeRow, tapes: BesideTapes): string | undefined {
  if (tape.parent_id === null) return hex(genesisHash(tape.ulid));
  const parent = tapes.tape(tape.parent_id);
  const [owner] = segments(db, { ...parent, floor_seq: 0 }, tape.base_seq - 1, tape.base_seq);
  if (owner === undefined) return undefined;
  const kept = tapes.entries?.at(owner.tapeId, tape.base_seq);
  if (kept !== undefined) return kept.hash;
  return db.get<{ hash: string }>(
    'SELECT lower(hex(hash)) AS hash FROM entry WHERE tape_id = @tape AND seq = @seq',
    { tape: owner.tapeId, seq: tape.base_seq },
  )?.hash;
}
