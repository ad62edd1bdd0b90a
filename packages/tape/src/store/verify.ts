import { verifyAliases } from '../check/aliases.ts';
import { type Beside, BesideTapes } from '../check/beside.ts';
import { LinesOfTapes, verifyLineage, verifyLines } from '../check/lineage.ts';
import { verifyMergedHeads, verifyMerges } from '../check/merges.ts';
import { type Problem, problemsOf, stopsReading } from '../check/problem.ts';
import { verifyRow } from '../check/row.ts';
import { tapesToVerify, verifyTape, type Watcher } from '../check/verify.ts';
import { ViewsOnTape, verifyViews } from '../check/views.ts';
import type { Db } from '../db/db.ts';
import { isTime } from '../entry/iso-time.ts';
import { baseFault } from '../entry/name.ts';
import { bodyFault } from '../inbox/body.ts';
import type { OnProgress } from '../progress.ts';
import type { TapeRow } from '../tape/tape.ts';

/**
 * Yields the problems of the tapes that a session reads, and the heads of children that its own merges
 * contradict.
 */
export function* verifySession(db: Db, session: TapeRow, onProgress?: OnProgress): Generator<Problem> {
  const counter = new Counter(countVerified(db, session).entries, onProgress);
  const chain = [...tapesToVerify(db, session)].map((one) => ({ ...one, views: new ViewsOnTape() }));
  let isWhole = true;
  for (const { tape, to, views } of chain) {
    const tapes = new BesideTapes(db, { first: tape.id, last: tape.id });
    const watchers = [views, counter];
    for (const problem of guarded(tape.name, verifyTape(db, tape, { tapes, to, watchers }))) {
      isWhole &&= !breaksViews.has(problem.code);
      yield problem;
    }
    yield* guarded(tape.name, verifyMerges(db, tape, { tapes, to }));
    yield* guarded(tape.name, verifyRecords(db, tape, tapes));
    yield* guarded(tape.name, verifyLines(tape, tapes.of(tape.id)));
  }
  const own = new BesideTapes(db, { first: session.id, last: session.id });
  yield* guarded(session.name, verifyMergedHeads(db, session, own));
  if (!isWhole) return;
  for (const { tape, views } of chain) yield* guarded(tape.name, verifyViews(db, tape, views));
}

/** Damage of entries that every view of them repeats. */
const breaksViews: ReadonlySet<Problem['code']> = new Set([
  'entry-changed',
  'entry-missing',
  'chain-broken',
  'base-wrong',
  'body-erased',
  'blob-changed',
  'database-damaged',
]);

/** Yields the problems of all tapes and of the lineage. */
export function* verifyAll(db: Db, onProgress?: OnProgress): Generator<Problem> {
  yield* guarded(null, verifyBase(db));
  const lines = linesOfTapes(db);
  yield* guarded(null, verifyTapes(db, lines, onProgress));
  if (lines?.areWhole !== true) yield* guarded(null, verifyLineage(db));
}

/** Yields the problems of some tapes, of each its own entries: those that it inherits are its parent's. */
export function* verifyEach(db: Db, ids: readonly number[], onProgress?: OnProgress): Generator<Problem> {
  const tapes = [...sizedIn(db, ids)];
  const total = tapes.reduce((sum, { entries }) => sum + entries, 0);
  const verified = {
    counter: new Counter(total, onProgress),
    broken: new Set<number>(),
    lines: 'each',
  } as const;
  for (const run of runsOf(tapes)) yield* verifyRun(db, run, verified);
}

/** Undefined where the lineage cannot be read, which its verification reports. */
function linesOfTapes(db: Db): LinesOfTapes | undefined {
  try {
    return new LinesOfTapes(db);
  } catch (error) {
    if (stopsReading(error)) throw error;
    return undefined;
  }
}

/** Counts the entries that were verified, and reports it after each hundred, which can be large, and at the last. */
class Counter implements Watcher {
  done = 0;
  readonly #total: number;
  readonly #onProgress: OnProgress | undefined;

  constructor(total: number, onProgress: OnProgress | undefined) {
    this.#total = total;
    this.#onProgress = onProgress;
  }

  saw(): void {
    this.done += 1;
    const { done } = this;
    if (done % 100 === 0 || done === this.#total) this.#onProgress?.({ done, total: this.#total });
  }
}

/** Yields a base of tape names in the table `home` that cannot be one. */
function* verifyBase(db: Db): Generator<Problem> {
  const { value = 'tape' } = db.get<{ value: string }>(`SELECT value FROM home WHERE key = 'base'`) ?? {};
  const fault = baseFault(value);
  if (fault === undefined) return;
  const message = `the home records a base of tape names that cannot be one: ${fault}`;
  yield { code: 'database-damaged', session: null, seq: null, message };
}

function* verifyTapes(
  db: Db,
  lines: LinesOfTapes | undefined,
  onProgress: OnProgress | undefined,
): Generator<Problem> {
  const counter = new Counter(countVerified(db).entries, onProgress);
  /** The tapes whose entries are damaged, and those that inherit from them. A parent comes before its children. */
  const broken = new Set<number>();
  for (const run of runsOf(sizedTapes(db))) yield* verifyRun(db, run, { counter, broken, lines });
}

/** The greatest numbers of tapes, and of entries, that are verified in one read: a reader keeps the log from being emptied. */
const most = { tapes: 33, entries: 2_000 };

/** A tape, and how many entries it has. */
interface Sized {
  readonly id: number;
  readonly name: string;
  readonly entries: number;
}

/** Yields tapes in runs of short ones that are neighbours, and of one long one. */
function* runsOf(tapes: Iterable<Sized>): Generator<readonly Sized[]> {
  let run: Sized[] = [];
  let left = most.entries;
  for (const tape of tapes) {
    const isNext = run.length === 0 || tape.id === (run.at(-1)?.id ?? 0) + 1;
    if (run.length === most.tapes || (run.length > 0 && (tape.entries > left || !isNext))) {
      yield run;
      [run, left] = [[], most.entries];
    }
    run.push(tape);
    left -= tape.entries;
  }
  if (run.length > 0) yield run;
}

const pageTapes = 500;
const sizedColumns = 'id, name, head_seq - base_seq AS entries';

/** All tapes, parents before children. */
function* sizedTapes(db: Db): Generator<Sized> {
  for (let after = -Infinity; ; ) {
    const page = db.all<Sized>(
      `SELECT ${sizedColumns} FROM tape WHERE id > @after ORDER BY id LIMIT ${pageTapes}`,
      { after },
    );
    yield* page;
    if (page.length < pageTapes) return;
    after = page.at(-1)?.id ?? after;
  }
}

/** Some tapes, parents before children. */
function* sizedIn(db: Db, ids: readonly number[]): Generator<Sized> {
  const sorted = ids.toSorted((a, b) => a - b);
  for (let at = 0; at < sorted.length; at += pageTapes)
    yield* db.all<Sized>(
      `SELECT ${sizedColumns} FROM tape WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(@ids)) ORDER BY id`,
      { ids: JSON.stringify(sorted.slice(at, at + pageTapes)) },
    );
}

/** What was found of the tapes before, and counts their entries. */
interface Verified {
  readonly counter: Counter;
  readonly broken: Set<number>;
  /** Collects the lines that agree, so that the lineage need not be read again; `each`: reports those that do not. */
  readonly lines: LinesOfTapes | 'each' | undefined;
}

/**
 * Verifies the tapes of a run, short ones in one read of the database. When one of them cannot be read, verifies each by
 * itself, so that the damage is reported of the right one.
 */
function* verifyRun(db: Db, run: readonly Sized[], before: Verified): Generator<Problem> {
  const ids = { first: run[0]?.id ?? 0, last: run.at(-1)?.id ?? 0 };
  const { counter } = before;
  const lines = before.lines === 'each' ? undefined : before.lines;
  const { done } = counter;
  const agreeing = lines?.agreeing ?? 0;
  const restart = () => {
    counter.done = done;
    if (lines !== undefined) lines.agreeing = agreeing;
  };
  const [alone] = run.length === 1 ? run : [];
  if (alone !== undefined) {
    const { name, entries } = alone;
    const tapes = new BesideTapes(db, ids);
    yield* inOneRead(db, entries, guarded(name, verifyTogether(db, tapes, { ...before, guard: guarded })));
    return;
  }
  let problems: Problem[] = [];
  try {
    db.read(() => {
      // The store does a read again that another process had locked out.
      restart();
      problems = [];
      const tapes = new BesideTapes(db, ids, { keepsEntries: true });
      for (const problem of verifyTogether(db, tapes, { ...before, guard: unguarded }))
        problems.push(problem);
    });
  } catch (error) {
    if (stopsReading(error)) throw error;
    restart();
    for (const tape of run) yield* verifyRun(db, [tape], before);
    return;
  }
  yield* problems;
}

/** Does the statements of a short tape in one read, which is much cheaper than one read for each. */
function* inOneRead(db: Db, entries: number, problems: Iterable<Problem>): Generator<Problem> {
  if (entries > most.entries) {
    yield* problems;
    return;
  }
  const found: Problem[] = [];
  try {
    db.read(() => {
      for (const problem of problems) found.push(problem);
    });
  } finally {
    // What was found before an error counts, too.
    yield* found;
  }
}

/** Makes problems of errors, or leaves them. */
type Guard = (session: string | null, problems: Iterable<Problem>) => Iterable<Problem>;

const unguarded: Guard = (_, problems) => problems;

function* verifyTogether(
  db: Db,
  tapes: BesideTapes,
  { counter, broken, lines, guard }: Verified & { readonly guard: Guard },
): Generator<Problem> {
  for (const tape of tapes.rows()) {
    const views = new ViewsOnTape();
    const watchers = [views, counter];
    for (const problem of guard(tape.name, verifyAlone(db, tape, { tapes, watchers, lines, guard }))) {
      if (breaksViews.has(problem.code)) broken.add(tape.id);
      yield problem;
    }
    if (broken.has(tape.id)) continue;
    if (tape.parent_id !== null && broken.has(tape.parent_id)) broken.add(tape.id);
    else yield* guard(tape.name, verifyViews(db, tape, views));
  }
}

function* verifyAlone(
  db: Db,
  tape: TapeRow,
  {
    guard,
    lines,
    ...verified
  }: Pick<Verified, 'lines'> & {
    readonly tapes: BesideTapes;
    readonly watchers: readonly Watcher[];
    readonly guard: Guard;
  },
): Generator<Problem> {
  const { tapes } = verified;
  yield* verifyTape(db, tape, verified);
  yield* verifyRecords(db, tape, tapes);
  // A child that cannot be read is reported as one of its own; the parent's other merges are still compared.
  yield* guard(tape.name, verifyMerges(db, tape, { tapes }));
  // Its lines were read by then. Those of a tape that cannot be read are not counted.
  if (lines === 'each') yield* verifyLines(tape, tapes.of(tape.id));
  else lines?.saw(tape, tapes.of(tape.id));
}

/** Counts the sessions and entries that `verifySession` reads; without a session, those of `verifyAll`. */
export function countVerified(
  db: Db,
  session?: TapeRow,
): { readonly sessions: number; readonly entries: number } {
  if (session === undefined)
    return (
      db.get<{ sessions: number; entries: number }>(
        `SELECT count(*) AS sessions, coalesce(sum(head_seq - base_seq), 0) AS entries FROM tape WHERE lifecycle <> 'staging'`,
      ) ?? { sessions: 0, entries: 0 }
    );
  let sessions = 0;
  let entries = 0;
  for (const { tape, to } of tapesToVerify(db, session)) {
    sessions += 1;
    entries += Math.max(0, to - tape.base_seq);
  }
  return { sessions, entries };
}

function* verifyRecords(db: Db, tape: TapeRow, tapes: BesideTapes): Generator<Problem> {
  const beside = tapes.of(tape.id);
  yield* verifyRow(db, tape, tapes);
  yield* verifyAliases(tape, beside);
  yield* verifyQueued(tape, beside);
}

/** Yields the items of an inbox that lack a field or a time, and the saved pieces of streams that are not JSON. */
function* verifyQueued({ name }: TapeRow, { inbox, badChunks }: Beside): Generator<Problem> {
  const problem = problemsOf(name);
  for (const { ulid, body, queued_at } of inbox) {
    const fault = bodyFault(body) ?? (isTime(queued_at) ? undefined : 'has no time');
    if (fault !== undefined)
      yield problem('database-damaged', null, `the item ${ulid} in the inbox of '${name}' ${fault}`);
  }
  for (const { run, idx } of badChunks)
    yield problem('database-damaged', null, `the saved piece ${idx} of run ${run} of '${name}' is not JSON`);
}

/**
 * Reports an error while reading as damage of the session that was read, so that the others are still
 * verified.
 */
function* guarded(session: string | null, problems: Iterable<Problem>): Generator<Problem> {
  try {
    yield* problems;
  } catch (error) {
    if (stopsReading(error)) throw error;
    const { data } = error as { data?: { seq?: unknown } };
    const seq = typeof data?.seq === 'number' ? data.seq : null;
    yield { code: 'database-damaged', session, seq, message: (error as Error).message };
  }
}
