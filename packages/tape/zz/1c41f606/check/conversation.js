import { parsed } from '../entry/parsed.js';
import {                    heard,               silence, speakerOf } from '../entry/speaker.js';
                                              
                                               
import {               problemsOf } from './problem.js';

/** The columns of an entry that say whose message it is. */
                     
                       
                        
                               
                                  
 

/** Counts the messages of a tape from its entries, to compare them with the tape's row. */
export class ConversationOnTape {
  #found               = silence;
  /** Messages that were erased, with the name of their speakers. */
  #erased = 0;
  #isLastErased = false;

  /** Receives the entries of the tape, in order. */
  saw(entry           )       {
    if (entry.kind !== 'message') return;
    if (entry.payload === null) {
      this.#erased += 1;
      this.#isLastErased = true;
      return;
    }
    const speaker = storedSpeaker(entry);
    if (speaker === undefined) return;
    this.#found = heard(this.#found, speaker);
    this.#isLastErased = false;
  }

  /** What follows from the entries seen so far, the erased ones left out. */
  get found()               {
    return this.#found;
  }

  /**
   * Yields a difference from the row, once all entries were seen. An erased message adds up to two: itself, and the
   * second half of an answer that it divided.
   */
  *problems({ name, message_count, last_speaker }         )                     {
    const { message_count: least, last_speaker: last } = this.#found;
    const isPossible = message_count >= least && message_count <= least + 2 * this.#erased;
    if (isPossible && (this.#isLastErased || last_speaker === last)) return;
    yield problemsOf(name)(
      'messages-differ',
      null,
      `the recorded number of messages of '${name}' differs from that of its entries`,
    );
  }
}

/** Whose message a stored entry is. The store writes the role of a message first, so that few are parsed. */
function storedSpeaker({ kind, meta, payload }           )                      {
  if (payload === null) return undefined;
  const known = /^\{"role":"(user|assistant)",/.exec(payload)?.[1];
  return speakerOf({
    kind,
    payload: known === undefined ? parsed(payload) : { role: known },
    ...(meta?.includes('"context"') === true && { meta: parsed(meta) }),
  });
}

/** Counts the messages of a tape anew from its entries, in the caller's transaction. */
export function rebuildConversation(db    , { id }                     )       {
  const conversation = new ConversationOnTape();
  for (let after = -1; ; ) {
    const rows = db.all           (
      `SELECT seq, kind, payload, meta FROM entry WHERE tape_id = @id AND seq > @after AND kind = 'message'
         ORDER BY seq LIMIT 500`,
      { id, after },
    );
    for (const row of rows) conversation.saw(row);
    if (rows.length < 500) break;
    after = rows.at(-1)?.seq ?? after;
  }
  db.run('UPDATE tape SET message_count = @message_count, last_speaker = @last_speaker WHERE id = @id', {
    id,
    ...conversation.found,
  });
}
