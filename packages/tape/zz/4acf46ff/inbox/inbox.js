import { crashPoint } from '../crash-point.js';
import { blobHashes, dropUnneeded, loadBlob, restoreBlobs } from '../entry/blob.js';
                                               
import { isoTime, isTime } from '../entry/iso-time.js';
                                             
import { normalise } from '../entry/normalise.js';
import { TapeError,                    } from '../errors.js';
import { mergeTape } from '../merge/merge.js';
import { planMerge } from '../merge/plan.js';
import { processOwner } from '../owner.js';
import {              writeEntries } from '../tape/append.js';
import { acquireLease,             liveLease, releaseLease } from '../tape/lease.js';
import { settleDead } from '../tape/leftovers.js';
                                               
import {               tapeById } from '../tape/tape.js';
import { bodyFault,                } from './body.js';

                          

/** The entries that a run made of an inbox item. */
                              
                      
                                    
 

/** An item to post to an inbox. */
                                            

/** An item of an inbox. `queuedAt` is in milliseconds since the epoch. */
                                                                       
                      
                           
                            
                                                                                               
                            
 

                    
                      
                        
                        
                          
                       
                        
                             
 

/** Returns the inbox of a session, oldest item first. */
export function inboxItems({ db }                    , tape         )              {
  return db
    .all          ('SELECT * FROM inbox WHERE tape_id = @tape ORDER BY id', { tape: tape.id })
    .map((row) => ({
      id: row.ulid,
      mode: row.mode,
      source: row.source,
      key: row.key,
      body: bodyOf(tape, row),
      queuedAt: row.queued_at,
      ...(row.id <= db.elsewhere.inbox && { elsewhere: true }),
    }));
}

function bodyOf({ name }         , { ulid, body, queued_at }          )            {
  const fault = bodyFault(body) ?? (isTime(queued_at) ? undefined : 'has no time');
  if (fault !== undefined)
    throw new TapeError('TAPE_CORRUPT', `cannot read item ${ulid} in the inbox of '${name}': it ${fault}`, {
      data: { session: name },
    });
  return JSON.parse(body)             ;
}

/** Returns the tapes with a non-empty inbox, which every open for writing drains. */
export function tapesWithInbox({ db }                    )           {
  return db.all                     ('SELECT DISTINCT tape_id FROM inbox').map((row) => row.tape_id);
}

/**
 * Failures with a cause outside the item: the whole drain fails and can be repeated, and no item is refused.
 */
const drainFailures                             = new Set(['TAPE_FENCED', 'TAPE_IO', 'TAPE_LOCKED']);

/**
 * Applies and removes appends and merges, oldest first, in the caller's transaction; returns how many. An
 * item that fails leaves an `inbox/refused` or `merge/refused` event with the reason. Items in `later` stay
 * in the inbox.
 */
export function drainInbox(
  writer        ,
  realm        ,
  { tapeId, lease, later = [] }                                                             ,
)         {
  let taken = 0;
  for (const item of inboxItems(writer, tapeById(writer.db, tapeId))) {
    if (item.body.type !== 'append' && item.body.type !== 'merge') continue;
    if (later.includes(item.id)) continue;
    const tape = tapeById(writer.db, tapeId);
    // A merge waits for a settled point: open calls get their results, or the next run closes them.
    if (item.body.type === 'merge' && tape.settled_seq !== tape.head_seq) continue;
    try {
      writer.db.savepoint(() => handle(writer, realm, { tapeId, lease, item }));
    } catch (error) {
      if (!(error instanceof TapeError) || drainFailures.has(error.code)) throw error;
      writeEntries(writer, tapeById(writer.db, tapeId), [refusal(item, error)], lease.epoch);
    }
    removeItem(writer, item);
    taken += 1;
  }
  return taken;
}

/**
 * Appends the entries that a run made of items and removes the items, in the caller's transaction; returns
 * how many. Skips items that are no longer in the inbox.
 */
export function takeItems(
  writer        ,
  tapeId        ,
  handled                        ,
  lease       ,
)         {
  const items = new Map(inboxItems(writer, tapeById(writer.db, tapeId)).map((item) => [item.id, item]));
  let count = 0;
  for (const { id, drafts } of handled) {
    const item = items.get(id);
    if (item === undefined) continue;
    const whole = restoreBlobs(drafts, (hash) => loadBlob(writer.db, hash))                    ;
    const entries = whole.flatMap(normalise).map((draft) => withOrigin(draft, item));
    writeEntries(writer, tapeById(writer.db, tapeId), entries, lease.epoch);
    removeItem(writer, item);
    count += 1;
  }
  return count;
}

function removeItem({ db }        , item           )       {
  crashPoint('inbox/handled');
  db.run('DELETE FROM inbox WHERE ulid = @id', { id: item.id });
  dropUnneeded(
    db,
    blobHashes(item.body).map((hash) => Buffer.from(hash, 'hex')),
  );
  crashPoint('inbox/removed');
}

/** Adds the origin of an item to the meta of its entry. */
function withOrigin(draft       , { source, mode, queuedAt, elsewhere }           )        {
  const meta = { source, mode, queued_at: isoTime(queuedAt), ...draft.meta };
  return { ...draft, meta: elsewhere === true ? { ...meta, elsewhere } : meta };
}

/**
 * Drains the inbox of a session without an owner, in the caller's transaction; returns how many items. Returns
 * undefined, and does nothing, when the session has a live lease.
 */
export function drainInPlaceOfOwner(writer        , realm        , tape         )                     {
  const { db, sources } = writer;
  if (liveLease(db, tape.id, sources) !== undefined) return undefined;
  const lease = acquireLease(db, tape, { owner: processOwner(sources.newId()), clock: sources });
  crashPoint('inbox/ownerless-leased');
  // What a run that died had said comes before what was posted since.
  if (inboxItems(writer, tape).some(({ body: { type } }) => type === 'append' || type === 'merge'))
    settleDead(writer, tapeById(db, tape.id), { epoch: lease.epoch });
  let count = 0;
  // Drained appends can settle the tape, which lets waiting merges proceed.
  do {
    count += drainInbox(writer, realm, { tapeId: tape.id, lease });
    crashPoint('inbox/ownerless-drained');
  } while (!releaseLease(db, tapeById(db, tape.id), lease));
  crashPoint('inbox/ownerless-released');
  return count;
}

function handle(
  writer        ,
  realm        ,
  { tapeId, lease, item }                                                   ,
)       {
  const body = restoreBlobs(item.body, (hash) => loadBlob(writer.db, hash))             ;
  if (body.type === 'merge') {
    const plan = planMerge(writer.db, realm, body.draft);
    if (plan.into.id !== tapeId)
      throw new TapeError(
        'TAPE_CONFLICT',
        `cannot merge '${plan.child.name}' into '${lease.session}': its parent is '${plan.into.name}'`,
      );
    if (mergeTape(writer, plan, body.draft, lease) === undefined)
      throw new TapeError('TAPE_CONFLICT', `cannot merge '${body.draft.child}': it has changed`);
    return;
  }
  if (body.type !== 'append') return;
  const drafts = body.drafts.map((draft) => withOrigin(draft, item));
  writeEntries(writer, tapeById(writer.db, tapeId), drafts, lease.epoch);
}

function refusal(item           , error           )        {
  const payload       = {
    id: item.id,
    source: item.source,
    type: item.body.type,
    code: error.code,
    message: error.message,
    ...(item.body.type === 'merge' && { child: item.body.draft.child }),
  };
  return { kind: 'event', name: item.body.type === 'merge' ? 'merge/refused' : 'inbox/refused', payload };
}
