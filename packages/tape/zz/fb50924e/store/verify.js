import { verifyAliases } from '../check/aliases.js';
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
                                                 
                                              
import {               tapeById } from '../tape/tape.js';

/**
 * Yields the problems of the tapes that a session reads, and the heads of children that its own merges
 * contradict.
 */
export function* verifySession(db    , session         , onProgress             )                     {
  const counter = countTo(countVerified(db, session).entries, onProgress);
  const tapes = [...tapesToVerify(db, session)].map((one) => ({ ...one, views: new ViewsOnTape() }));
  let isWhole = true;
  for (const { tape, to, views } of tapes) {
    for (const problem of guarded(tape.name, verifyTape(db, tape, { to, watchers: [views, counter] }))) {
      isWhole &&= !breaksViews.has(problem.code);
      yield problem;
    }
    yield* guarded(tape.name, verifyMerges(db, tape, to));
    yield* guarded(tape.name, verifyRecords(db, tape));
    yield* guarded(tape.name, verifyLines(db, tape));
  }
  yield* guarded(session.name, verifyMergedHeads(db, session));
  if (!isWhole) return;
  for (const { tape, views } of tapes) yield* guarded(tape.name, verifyViews(db, tape, views));
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

/** Reports how many entries were verified, after each thousand and at the last. */
function countTo(total        , onProgress                        )          {
  let done = 0;
  return {
    saw() {
      done += 1;
      if (done % 1_000 === 0 || done === total) onProgress?.({ done, total });
    },
  };
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
  const counter = countTo(countVerified(db).entries, onProgress);
  /** The tapes whose entries are damaged, and those that inherit from them. A parent comes before its children. */
  const broken = new Set        ();
  for (const { id, name, entries } of db.all                                               (
    'SELECT id, name, head_seq - base_seq AS entries FROM tape ORDER BY id',
  )) {
    const views = new ViewsOnTape();
    for (const problem of guarded(name, inOneRead(db, entries, verifyById(db, id, [views, counter])))) {
      if (breaksViews.has(problem.code)) broken.add(id);
      yield problem;
    }
    if (!broken.has(id)) yield* guarded(name, verifyViewsById(db, id, { views, broken }));
  }
}

/** The greatest number of entries of a tape that is verified in one read: a reader keeps the log from being emptied. */
const oneReadMax = 2_000;

/** Does the statements of a short tape in one read, which is much cheaper than one read for each. */
function* inOneRead(db    , entries        , problems                   )                     {
  if (entries > oneReadMax) {
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

function* verifyViewsById(
  db    ,
  id        ,
  { views, broken }                                                               ,
)                     {
  const tape = tapeById(db, id);
  if (tape.parent_id !== null && broken.has(tape.parent_id)) broken.add(id);
  else yield* verifyViews(db, tape, views);
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

function* verifyById(db    , id        , watchers                    )                     {
  const tape = tapeById(db, id);
  yield* verifyTape(db, tape, { watchers });
  yield* verifyRecords(db, tape);
  // A child that cannot be read is reported as one of its own; the parent's other merges are still compared.
  yield* guarded(tape.name, verifyMerges(db, tape));
}

function* verifyRecords(db    , tape         )                     {
  yield* verifyRow(db, tape);
  yield* verifyAliases(db, tape);
  yield* verifyQueued(db, tape);
}

/** Yields the items of an inbox that lack a field or a time, and the saved pieces of streams that are not JSON. */
function* verifyQueued(db    , { id, name }         )                     {
  const problem = problemsOf(name);
  for (const { ulid, body, queued_at } of db.all                                                   (
    'SELECT ulid, body, queued_at FROM inbox WHERE tape_id = @id ORDER BY id',
    { id },
  )) {
    const fault = bodyFault(body) ?? (isTime(queued_at) ? undefined : 'has no time');
    if (fault !== undefined)
      yield problem('database-damaged', null, `the item ${ulid} in the inbox of '${name}' ${fault}`);
  }
  for (const { run, idx } of db.all                              (
    'SELECT run, idx FROM stream_chunk WHERE tape_id = @id AND NOT json_valid(chunk) ORDER BY run, idx',
    { id },
  ))
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
