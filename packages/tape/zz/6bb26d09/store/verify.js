import { verifyAliases } from '../check/aliases.js';
import {              BesideTapes } from '../check/beside.js';
import { verifyLineage, verifyLines } from '../check/lineage.js';
import { verifyMergedHeads, verifyMerges } from '../check/merges.js';
import {               problemsOf } from '../check/problem.js';
import { verifyRow } from '../check/row.js';
import { tapesToVerify, verifyTape,              } from '../check/verify.js';
import { ViewsOnTape, verifyViews } from '../check/views.js';
import { isTime } from '../entry/iso-time.js';
import { baseFault } from '../entry/name.js';
import { TapeError } from '../errors.js';
import { bodyFault } from '../inbox/body.js';
                                                 
                                              
                                               

/**
 * Yields the problems of the tapes that a session reads, and the heads of children that its own merges
 * contradict.
 */
export function* verifySession(db    , session         , onProgress             )                     {
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
const breaksViews                               = new Set([
  'entry-changed',
  'entry-missing',
  'chain-broken',
  'base-wrong',
  'body-erased',
  'blob-changed',
  'database-damaged',
]);

/** Yields the problems of all tapes and of the lineage. */
export function* verifyAll(db    , onProgress             )                     {
  yield* guarded(null, verifyBase(db));
  yield* guarded(null, verifyTapes(db, onProgress));
  yield* guarded(null, verifyLineage(db));
}

/** Counts the entries that were verified, and reports it after each thousand and at the last. */
class Counter                    {
  done = 0;
           #total        ;
           #onProgress                        ;

  constructor(total        , onProgress                        ) {
    this.#total = total;
    this.#onProgress = onProgress;
  }

  saw()       {
    this.done += 1;
    const { done } = this;
    if (done % 1_000 === 0 || done === this.#total) this.#onProgress?.({ done, total: this.#total });
  }
}

/** Yields a base of tape names in the table `home` that cannot be one. */
function* verifyBase(db    )                     {
  const { value = 'tape' } = db.get                   (`SELECT value FROM home WHERE key = 'base'`) ?? {};
  const fault = baseFault(value);
  if (fault === undefined) return;
  const message = `the home records a base of tape names that cannot be one: ${fault}`;
  yield { code: 'database-damaged', session: null, seq: null, message };
}

function* verifyTapes(db    , onProgress                        )                     {
  const counter = new Counter(countVerified(db).entries, onProgress);
  /** The tapes whose entries are damaged, and those that inherit from them. A parent comes before its children. */
  const broken = new Set        ();
  for (const run of runsOf(db)) yield* verifyRun(db, run, { counter, broken });
}

/** The greatest numbers of tapes, and of entries, that are verified in one read: a reader keeps the log from being emptied. */
const most = { tapes: 33, entries: 2_000 };

/** A tape, and how many entries it has. */
                 
                      
                        
                           
 

/** Yields all tapes in runs of short ones, and of one long one. */
function* runsOf(db    )                              {
  let run          = [];
  let left = most.entries;
  for (let after = -Infinity; ; ) {
    const page = db.all       (
      `SELECT id, name, head_seq - base_seq AS entries FROM tape WHERE id > @after ORDER BY id LIMIT 500`,
      { after },
    );
    for (const tape of page) {
      if (run.length === most.tapes || (tape.entries > left && run.length > 0)) {
        yield run;
        [run, left] = [[], most.entries];
      }
      run.push(tape);
      left -= tape.entries;
    }
    if (page.length < 500) break;
    after = page.at(-1)?.id ?? after;
  }
  if (run.length > 0) yield run;
}

/** What was found of the tapes before, and counts their entries. */
                    
                            
                               
 

/**
 * Verifies the tapes of a run, short ones in one read of the database. When one of them cannot be read, verifies each by
 * itself, so that the damage is reported of the right one.
 */
function* verifyRun(db    , run                  , before          )                     {
  const ids = { first: run[0]?.id ?? 0, last: run.at(-1)?.id ?? 0 };
  const { counter } = before;
  const { done } = counter;
  const [alone] = run.length === 1 ? run : [];
  if (alone !== undefined) {
    const { name, entries } = alone;
    const tapes = new BesideTapes(db, ids);
    yield* inOneRead(db, entries, guarded(name, verifyTogether(db, tapes, { ...before, guard: guarded })));
    return;
  }
  const problems            = [];
  try {
    db.read(() => {
      const tapes = new BesideTapes(db, ids, { keepsEntries: true });
      for (const problem of verifyTogether(db, tapes, { ...before, guard: unguarded }))
        problems.push(problem);
    });
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_CLOSED') throw error;
    counter.done = done;
    for (const tape of run) yield* verifyRun(db, [tape], before);
    return;
  }
  yield* problems;
}

/** Does the statements of a short tape in one read, which is much cheaper than one read for each. */
function* inOneRead(db    , entries        , problems                   )                     {
  if (entries > most.entries) {
    yield* problems;
    return;
  }
  const found            = [];
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
                                                                                        

const unguarded        = (_, problems) => problems;

function* verifyTogether(
  db    ,
  tapes             ,
  { counter, broken, guard }                                      ,
)                     {
  for (const tape of tapes.rows()) {
    const views = new ViewsOnTape();
    const watchers = [views, counter];
    for (const problem of guard(tape.name, verifyAlone(db, tape, { tapes, watchers, guard }))) {
      if (breaksViews.has(problem.code)) broken.add(tape.id);
      yield problem;
    }
    if (broken.has(tape.id)) continue;
    if (tape.parent_id !== null && broken.has(tape.parent_id)) broken.add(tape.id);
    else yield* guard(tape.name, verifyViews(db, tape, views));
  }
}

function* verifyAlone(
  db    ,
  tape         ,
  {
    guard,
    ...verified
  }                                                                                               ,
)                     {
  const { tapes } = verified;
  yield* verifyTape(db, tape, verified);
  yield* verifyRecords(db, tape, tapes);
  // A child that cannot be read is reported as one of its own; the parent's other merges are still compared.
  yield* guard(tape.name, verifyMerges(db, tape, { tapes }));
}

/** Counts the sessions and entries that `verifySession` reads; without a session, those of `verifyAll`. */
export function countVerified(
  db    ,
  session          ,
)                                                          {
  if (session === undefined)
    return (
      db.get                                       (
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

function* verifyRecords(db    , tape         , tapes             )                     {
  const beside = tapes.of(tape.id);
  yield* verifyRow(db, tape, tapes);
  yield* verifyAliases(tape, beside);
  yield* verifyQueued(tape, beside);
}

/** Yields the items of an inbox that lack a field or a time, and the saved pieces of streams that are not JSON. */
function* verifyQueued({ name }         , { inbox, badChunks }        )                     {
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
function* guarded(session               , problems                   )                     {
  try {
    yield* problems;
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_CLOSED') throw error;
    const { data } = error                                ;
    const seq = typeof data?.seq === 'number' ? data.seq : null;
    yield { code: 'database-damaged', session, seq, message: (error         ).message };
  }
}
