import { encodeDraft } from '../entry/encode.js';
import { isObject } from '../entry/json.js';
import { quote } from '../entry/name.js';
import { TapeError } from '../errors.js';
import {
  drainInbox,
  drainInPlaceOfOwner,
                 
                  
                 
  inboxItems,
  takeItems,
} from '../inbox/inbox.js';
import { ownerOf } from '../owner.js';
import { repeatedOnly, repetitions } from '../tape/append.js';
import {             liveLease } from '../tape/lease.js';
import { postItem } from '../tape/post.js';
                                           
                                                  
                                                 
import { keyedDrafts } from './keys.js';
import { assertOptions,                    fieldsOf } from './options.js';
                                                

const bodyTypes                       = new Set([
  'append',
  'merge',
  'input',
  'answer',
  'abort',
]                              );

/**
 * Refuses a body of another type: no process would take it out of the inbox.
 * @throws TAPE_BAD_ENTRY
 */
function assertBody(body         , name              )       {
  const refuse = (why        ) => new TapeError('TAPE_BAD_ENTRY', `cannot post to ${quote(name())}: ${why}`);
  if (!isObject(body) || !bodyTypes.has(body.type)) throw refuse('the body is of no known type');
  if ((body.type === 'append' || body.type === 'input') && !Array.isArray(body.drafts))
    throw refuse('the body has no drafts');
}

/** Makes `store.inbox`. */
export function inboxOn(at            )                   {
  const { db, realm, writer } = at;

  function drainOwned(lease       , { taken = [], later }              )         {
    return db.writeThrough(() => {
      const tape = at.need(lease.id);
      at.epoch(tape, lease);
      const before = takeItems(writer, tape.id, taken, lease);
      return before + drainInbox(writer, realm, { tapeId: tape.id, lease, ...(later && { later }) });
    });
  }

  return {
    post(ref     , item            )         {
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

    list(ref     )                       {
      return inboxItems({ db }, at.need(ref));
    },

    drain(owned             , o               = {})                     {
      const isOwned = typeof owned !== 'string';
      const known = isOwned ? fieldsOf['inbox.drain'] : {};
      assertOptions(o, known, 'drain the inbox of', isOwned ? owned.session : owned);
      const count = isOwned
        ? drainOwned(owned, o)
        : db.writeThrough(() => drainInPlaceOfOwner(writer, realm, at.need(owned)));
      if (count !== undefined && count > 0) at.drainOutbox();
      return count;
    },
  };
}
