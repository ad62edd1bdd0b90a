import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import { blobHashes, dropUnneeded, loadBlob, restoreBlobs } from '../entry/blob.ts';
import type { Draft } from '../entry/entry.ts';
import { isoTime, isTime } from '../entry/iso-time.ts';
import type { Json } from '../entry/json.ts';
import { normalise } from '../entry/normalise.ts';
import { TapeError, type TapeErrorCode } from '../errors.ts';
import { mergeTape } from '../merge/merge.ts';
import { planMerge } from '../merge/plan.ts';
import { processOwner } from '../owner.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import { acquireLease, endLease, type Lease, liveLease, releaseLease } from '../tape/lease.ts';
import { settleDead } from '../tape/leftovers.ts';
import type { Posting } from '../tape/post.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import { bodyFault, type InboxBody } from './body.ts';

export type { InboxBody };

/** The entries that a run made of an inbox item. */
export interface HandledItem {
  readonly id: string;
  readonly drafts: readonly Draft[];
}

/** An item to post to an inbox. */
export type InboxDraft = Posting<InboxBody>;

/** An item of an inbox. `queuedAt` is in milliseconds since the epoch. */
export interface InboxItem extends Required<Omit<InboxDraft, 'body'>> {
  readonly id: string;
  readonly body: InboxBody;
  readonly queuedAt: number;
  /** It was posted before the home came to this user and machine: see `StoreOptions.trust`. */
  readonly elsewhere?: true;
}

interface InboxRow {
  readonly id: number;
  readonly ulid: string;
  readonly mode: string;
  readonly source: string;
  readonly key: string;
  readonly body: string;
  readonly queued_at: number;
}

/** Returns the inbox of a session, oldest item first. */
export function inboxItems({ db }: Pick<Writer, 'db'>, tape: TapeRow): InboxItem[] {
  const rows = db.all<InboxRow>('SELECT * FROM inbox WHERE tape_id = @tape ORDER BY id', { tape: tape.id });
  return rows.map((row) => itemOf(db, tape, row));
}

function itemOf(db: Db, tape: TapeRow, row: InboxRow): InboxItem {
  return {
    id: row.ulid,
    mode: row.mode,
    source: row.source,
    key: row.key,
    body: bodyOf(tape, row),
    queuedAt: row.queued_at,
    ...(row.id <= db.elsewhere.inbox && { elsewhere: true }),
  };
}

/** The items with which a drain begins. One that takes few does not read all of a long inbox each time. */
function firstItems(
  { db }: Writer,
  tape: TapeRow,
  { later, most }: { readonly later: readonly string[]; readonly most: number },
): InboxItem[] {
  if (most === Number.POSITIVE_INFINITY) return inboxItems({ db }, tape);
  const rows = db.all<InboxRow>(
    `SELECT * FROM inbox WHERE tape_id = @tape AND CASE body ->> '$.type'
         WHEN 'append' THEN true WHEN 'merge' THEN @settled = 1 ELSE false END ORDER BY id LIMIT @limit`,
    { tape: tape.id, settled: tape.settled_seq === tape.head_seq ? 1 : 0, limit: later.length + most },
  );
  return rows.map((row) => itemOf(db, tape, row));
}

function bodyOf({ name }: TapeRow, { ulid, body, queued_at }: InboxRow): InboxBody {
  const fault = bodyFault(body) ?? (isTime(queued_at) ? undefined : 'has no time');
  if (fault !== undefined)
    throw new TapeError('TAPE_CORRUPT', `cannot read item ${ulid} in the inbox of '${name}': it ${fault}`, {
      data: { session: name },
    });
  return JSON.parse(body) as InboxBody;
}

/** Returns the tapes with a non-empty inbox, which every open for writing drains. */
export function tapesWithInbox({ db }: Pick<Writer, 'db'>): number[] {
  return db.all<{ tape_id: number }>('SELECT DISTINCT tape_id FROM inbox').map((row) => row.tape_id);
}

/**
 * Failures with a cause outside the item: the whole drain fails and can be repeated, and no item is refused.
 */
const drainFailures: ReadonlySet<TapeErrorCode> = new Set(['TAPE_FENCED', 'TAPE_IO', 'TAPE_LOCKED']);

/**
 * Applies and removes appends and merges, oldest first, in the caller's transaction, at most `most`; returns how
 * many. An item that fails leaves an `inbox/refused` or `merge/refused` event with the reason. Items in `later` stay
 * in the inbox.
 */
export function drainInbox(
  writer: Writer,
  realm: string,
  {
    tapeId,
    lease,
    later = [],
    most = Number.POSITIVE_INFINITY,
  }: { tapeId: number; lease: Lease; later?: readonly string[]; most?: number },
): number {
  let taken = 0;
  for (const item of firstItems(writer, tapeById(writer.db, tapeId), { later, most })) {
    if (taken >= most) break;
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
  writer: Writer,
  tapeId: number,
  handled: readonly HandledItem[],
  lease: Lease,
): number {
  if (handled.length === 0) return 0;
  const items = new Map(inboxItems(writer, tapeById(writer.db, tapeId)).map((item) => [item.id, item]));
  let count = 0;
  for (const { id, drafts } of handled) {
    const item = items.get(id);
    if (item === undefined) continue;
    const whole = restoreBlobs(drafts, (hash) => loadBlob(writer.db, hash)) as readonly Draft[];
    const entries = whole.flatMap(normalise).map((draft) => withOrigin(draft, item));
    writeEntries(writer, tapeById(writer.db, tapeId), entries, lease.epoch);
    removeItem(writer, item);
    count += 1;
  }
  return count;
}

function removeItem({ db }: Writer, item: InboxItem): void {
  crashPoint('inbox/handled');
  db.run('DELETE FROM inbox WHERE ulid = @id', { id: item.id });
  dropUnneeded(
    db,
    blobHashes(item.body).map((hash) => Buffer.from(hash, 'hex')),
  );
  crashPoint('inbox/removed');
}

/** Adds the origin of an item to the meta of its entry. */
function withOrigin(draft: Draft, { source, mode, queuedAt, elsewhere }: InboxItem): Draft {
  const meta = { source, mode, queued_at: isoTime(queuedAt), ...draft.meta };
  return { ...draft, meta: elsewhere === true ? { ...meta, elsewhere } : meta };
}

/**
 * Drains the inbox of a session without an owner, in the caller's transaction, at most `most` items; returns how many.
 * Returns undefined, and does nothing, when the session has a live lease.
 */
export function drainInPlaceOfOwner(
  writer: Writer,
  realm: string,
  tape: TapeRow,
  most: number = Number.POSITIVE_INFINITY,
): number | undefined {
  const { db, sources } = writer;
  if (liveLease(db, tape.id, sources) !== undefined) return undefined;
  const lease = acquireLease(db, tape, { owner: processOwner(sources.newId()), clock: sources });
  crashPoint('inbox/ownerless-leased');
  // What a run that died had said comes before what was posted since.
  const first = firstItems(writer, tape, { later: [], most });
  if (first.some(({ body: { type } }) => type === 'append' || type === 'merge'))
    settleDead(writer, tapeById(db, tape.id), { epoch: lease.epoch });
  let count = 0;
  // Drained appends can settle the tape, which lets waiting merges proceed.
  do {
    count += drainInbox(writer, realm, { tapeId: tape.id, lease, most: most - count });
    crashPoint('inbox/ownerless-drained');
  } while (count < most && !releaseLease(db, tapeById(db, tape.id), lease));
  if (count >= most) endLease(db, tape.id, lease);
  crashPoint('inbox/ownerless-released');
  return count;
}

function handle(
  writer: Writer,
  realm: string,
  { tapeId, lease, item }: { tapeId: number; lease: Lease; item: InboxItem },
): void {
  const body = restoreBlobs(item.body, (hash) => loadBlob(writer.db, hash)) as InboxBody;
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

function refusal(item: InboxItem, error: TapeError): Draft {
  const payload: Json = {
    id: item.id,
    source: item.source,
    type: item.body.type,
    code: error.code,
    message: error.message,
    ...(item.body.type === 'merge' && { child: item.body.draft.child }),
  };
  return { kind: 'event', name: item.body.type === 'merge' ? 'merge/refused' : 'inbox/refused', payload };
}
