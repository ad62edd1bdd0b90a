import { encodeDraft } from '../entry/encode.ts';
import { isObject } from '../entry/json.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import {
  drainInbox,
  drainInPlaceOfOwner,
  type InboxBody,
  type InboxDraft,
  type InboxItem,
  inboxItems,
  takeItems,
} from '../inbox/inbox.ts';
import { ownerOf } from '../owner.ts';
import { repeatedOnly, repetitions } from '../tape/append.ts';
import { type Lease, liveLease } from '../tape/lease.ts';
import { postItem } from '../tape/post.ts';
import type { Ref } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { keyedDrafts } from './keys.ts';
import { assertOptions, type DrainOptions, fieldsOf } from './options.ts';
import type { Inbox, Posted } from './store.ts';

const bodyTypes: ReadonlySet<unknown> = new Set([
  'append',
  'merge',
  'input',
  'answer',
  'abort',
] satisfies InboxBody['type'][]);

/**
 * Refuses a body of another type: no process would take it out of the inbox.
 * @throws TAPE_BAD_ENTRY
 */
function assertBody(body: unknown, name: () => string): void {
  const refuse = (why: string) => new TapeError('TAPE_BAD_ENTRY', `cannot post to ${quote(name())}: ${why}`);
  if (!isObject(body) || !bodyTypes.has(body.type)) throw refuse('the body is of no known type');
  if ((body.type === 'append' || body.type === 'input') && !Array.isArray(body.drafts))
    throw refuse('the body has no drafts');
}

/** Makes `store.inbox`. */
export function inboxOn(at: Connection): InProcess<Inbox> {
  const { db, realm, writer } = at;
  const most = db.itemsOfAct ?? Number.POSITIVE_INFINITY;

  function drainOwned(lease: Lease, { taken = [], later }: DrainOptions): number {
    return db.writeThrough(() => {
      const tape = at.need(lease.id);
      at.epoch(tape, lease);
      const before = takeItems(writer, tape.id, taken, lease);
      return before + drainInbox(writer, realm, { tapeId: tape.id, lease, ...(later && { later }), most });
    });
  }

  return {
    post(ref: Ref, item: InboxDraft): Posted {
      assertOptions(item, fieldsOf['inbox.post'], 'post to', at.named(ref));
      assertBody(item.body, at.named(ref));
      // Checked and keyed now, so that draining cannot fail on it and a repeated append adds nothing.
      const body =
        item.body.type === 'append' || item.body.type === 'input'
          ? { ...item.body, drafts: keyedDrafts(item.body.drafts, item.key) }
          : item.body;
      return db.write(() => {
        const tape = at.need(ref);
        const appended =
          body.type === 'append' || body.type === 'input'
            ? repeatedOnly(tape, repetitions(writer, tape, body.drafts.map(encodeDraft)))
            : undefined;
        if (appended !== undefined) return { id: item.key ?? '', appended };
        const id = postItem(writer, tape, { ...item, body });
        const held = liveLease(db, tape.id, at.clock);
        return { id, ...(held !== undefined && { owner: ownerOf(held) }) };
      });
    },

    list(ref: Ref): readonly InboxItem[] {
      return inboxItems({ db }, at.need(ref));
    },

    drain(owned: Lease | Ref, o: DrainOptions = {}): number | undefined {
      const isOwned = typeof owned !== 'string';
      const known = isOwned ? fieldsOf['inbox.drain'] : {};
      assertOptions(o, known, 'drain the inbox of', isOwned ? owned.session : owned);
      const count = isOwned
        ? drainOwned(owned, o)
        : db.writeThrough(() => drainInPlaceOfOwner(writer, realm, at.need(owned), most));
      if (count !== undefined && count > 0) at.drainOutbox();
      return count;
    },
  };
}
