                                               
import { hex } from '../entry/hash.js';
                                                
import { postItem } from '../tape/post.js';
import {                          tapeById } from '../tape/tape.js';

/**
 * Whether a child in this state of its task tells its parent that it has ended: it was forked with
 * `deliver: 'notify'`. An archived parent takes no messages.
 */
export function tellsParent({ db }                    , child         , task      )          {
  if (child.deliver !== 'notify' || child.parent_id === null || task === 'running') return false;
  return tapeById(db, child.parent_id).lifecycle === 'active';
}

/**
 * Posts the message that a child has ended to the inbox of its parent, in the transaction that records the end: so
 * whichever process runs the child, the parent gets it, once for each end. The result stays on the child's tape.
 */
export function tellParent(writer        , child         , task      )       {
  if (child.parent_id === null) return;
  const key = `ended:${child.ulid}:${hex(child.head_hash)}:${task}`;
  const text = `Session ${child.name}, which you started, has ended (${task}). Its result is not merged; it is on the tape of ${child.name}.`;
  const draft        = {
    kind: 'message',
    payload: { role: 'user', content: [{ type: 'text', text }] },
    meta: { child: child.ulid, session: child.name, status: task },
    key,
  };
  const parent = tapeById(writer.db, child.parent_id);
  const body = { type: 'append', drafts: [draft] };
  postItem(writer, parent, { body, source: 'agent', key });
}
