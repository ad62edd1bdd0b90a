/**
 * Verification of the tapes: `verify.ts` recomputes the hash chains, `heads.ts` compares them with the heads that
 * `recorded-heads.ts` finds elsewhere, `merges.ts` compares marks of merges with their messages and children,
 * `views.ts` makes recorded views again, `lineage.ts`, `aliases.ts`, `calls.ts`, `open-run.ts`, `usage.ts`, `spoken.ts` and
 * `conversation.ts` compare what is stored beside the entries, `database.ts` and `schema.ts` check the file, and `doctor.ts` finds leftovers.
 * `beside.ts` reads what these compare, for many tapes at once, and `kept-entries.ts` their entries; `problem.ts` defines the
 * result. Imports `merge`,
 * `search`, `lineage`, `tape` and what lies below them.
 */
import { blobHashes } from '../entry/blob.js';
                                             
import { bodyText, entryText, genesisHash, hex, sha256 } from '../entry/hash.js';
                                              
import { segments } from '../tape/interval.js';
import {               tapeById } from '../tape/tape.js';
                                               
import { CallsOnTape } from './calls.js';
import { ConversationOnTape } from './conversation.js';
import { CopiesOnTape } from './copies.js';
import { verifyForkStart } from './fork-start.js';
import { HeadsOnTape } from './heads.js';
import {                entryColumns } from './kept-entries.js';
import { RunOnTape } from './open-run.js';
import {               problemsOf,                    } from './problem.js';
import { recordedHeads } from './recorded-heads.js';
import { SpokenOnTape } from './spoken.js';
import { TouchesOnTape } from './touches.js';
import { UsageOnTape } from './usage.js';

const pageRows = 512;

/**
 * Yields the tapes to verify for a session: itself and its ancestors, each up to where the next was forked
 * from it.
 */
export function* tapesToVerify(db    , tape         )                                        {
  let to = tape.head_seq;
  const seen = new Set        ();
  for (let at                      = tape; at !== undefined && !seen.has(at.id); ) {
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
 * @param to the last position to verify
 * @param watchers see the entries as well, which spares another reading
 */
export function* verifyTape(
  db    ,
  tape         ,
  { tapes, to = tape.head_seq, watchers: others }          ,
)                     {
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
  const reported = new Set            ();
  let isChained = true;
  let isWhole = true;
  for (const problem of verifyChain(db, tape, { tapes, to, watchers })) {
    if (problem.code === 'row-changed' && reported.has(problem.seq)) continue;
    if (problem.code === 'entry-missing' || problem.code === 'chain-broken') isChained = false;
    if (damagesBody.has(problem.code)) isWhole = false;
    reported.add(problem.seq);
    yield problem;
  }
  for (const problem of heads.problems({ isChained })) if (!reported.has(problem.seq)) yield problem;
  for (const problem of [...copies.problems(), ...verifyForkStart(db, tape, tapes)])
    if (!reported.has(problem.seq)) yield problem;
  // What follows from all entries is not known of a part, nor where one is missing or another one.
  if (to !== tape.head_seq || !isChained) return;
  yield* calls.problems();
  yield* spoken.problems();
  yield* run.problems(db, tape, tapes);
  yield* usage.problems(tape, beside.usage);
  if (!isWhole) return;
  yield* conversation.problems(tape);
  yield* touches.problems();
}

/** Damage after which the content of an entry is not known. */
const damagesBody                               = new Set([
  'entry-changed',
  'body-erased',
  'database-damaged',
]);

/** What to verify of a tape, and what looks at the entries on the way. */
                        
                              
                   
                                        
 

                                                                 

/** Looks at each entry of a tape, in order, while its chain is verified. */
                          
                             
 

function* verifyChain(db    , tape         , { tapes, to, watchers }              )                     {
  const problem = problemsOf(tape.name);
  const base = baseHash(db, tape, tapes);
  if (base !== hex(tape.base_hash))
    yield problem(
      'base-wrong',
      tape.base_seq,
      `${tape.name} does not continue from its parent's entry at ${tape.base_seq}`,
    );
  let previous                    = [hex(tape.base_hash)];
  let expected = tape.base_seq + 1;
  let epoch = 0;
  for (const rows of pagesOf(db, tape, { tapes, to }))
    for (const row of rows) {
      if (row.seq !== expected) {
        yield problem('entry-missing', expected, `${tape.name}@${expected} is missing`);
        expected = row.seq;
        previous = [];
      }
      if (isIntact(tape, row, previous)) previous = [row.hash];
      else previous = yield* verifyEntry(db, tape, { row, previous, problem });
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
  const { stray } = tapes.of(tape.id);
  if (stray !== undefined)
    yield problem('head-wrong', stray, `${tape.name}@${stray} is outside the positions of its tape`);
}

/** The entries of a tape up to a position, in pages. */
function* pagesOf(
  db    ,
  { id, base_seq }         ,
  { tapes, to }                                    ,
)                                 {
  const kept = tapes.entries?.of(id);
  if (kept !== undefined) {
    yield kept.filter(({ seq }) => seq > base_seq && seq <= to);
    return;
  }
  for (let after = base_seq; after < to; ) {
    const rows = db.all          (
      `SELECT ${entryColumns} FROM entry WHERE tape_id = @id AND seq > @after AND seq <= @to ORDER BY seq LIMIT @limit`,
      { id, after, to, limit: pageRows },
    );
    yield rows;
    if (rows.length < pageRows) return;
    after = rows.at(-1)?.seq ?? to;
  }
}

                
                         
                                                                                         
                                       
                                  
 

/**
 * Returns whether an entry is what nearly all are: readable, without blobs, with the hashes of its body and of its
 * link. `verifyEntry` examines all others.
 */
function isIntact({ ulid }         , row          , previous                   )          {
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
function* verifyEntry(db    , tape         , { row, previous, problem }      )                               {
  const at = `${tape.name}@${row.seq}`;
  if (row.payload === null && row.meta === null && row.salt === null) {
    const redacted = db.get(
      `SELECT 1 FROM entry WHERE tape_id = @id AND mark = 'redaction' AND ref = @seq LIMIT 1`,
      { id: tape.id, seq: row.seq },
    );
    if (redacted === undefined)
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
  db    ,
  { id, payload }                                  ,
  problem                          ,
)                     {
  if (payload === null || !payload.includes(blobMark)) return;
  for (const hexHash of new Set(blobHashes(JSON.parse(payload)))) {
    const hash = Buffer.from(hexHash, 'hex');
    const row = db.get                       ('SELECT bytes FROM blob WHERE hash = @hash', { hash });
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
function baseHash(db    , tape         , tapes             )                     {
  if (tape.parent_id === null) return hex(genesisHash(tape.ulid));
  const parent = tapes.tape(tape.parent_id);
  const [owner] = segments(db, { ...parent, floor_seq: 0 }, tape.base_seq - 1, tape.base_seq);
  if (owner === undefined) return undefined;
  const kept = tapes.entries?.at(owner.tapeId, tape.base_seq);
  if (kept !== undefined) return kept.hash;
  return db.get                  (
    'SELECT lower(hex(hash)) AS hash FROM entry WHERE tape_id = @tape AND seq = @seq',
    { tape: owner.tapeId, seq: tape.base_seq },
  )?.hash;
}
