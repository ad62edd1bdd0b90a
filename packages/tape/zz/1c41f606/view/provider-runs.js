                                            
import { isClientCall } from './fit-call.js';
import { isOwn } from './fit-part.js';
                                            

                
                           
                         
 

/**
 * Pairs the calls that the target itself executed with their results, as far as they can return to it.
 * Messages are identified by number. A result may be in a later message, when the provider paused or waited
 * for a client-side tool, but not after a user message. A call without a result counts only where the
 * provider is still to resume it.
 */
export class ProviderRunFinder {
  /** Indexes of parts by message number: complete pairs, and calls that the provider is still to resume. */
           paired                           = new Map();
  /** Messages that continue a call of an earlier message, or lie between the two. Complete after `end`. */
           continuing              = new Set();
  /** The ids of the paired calls. */
           ids              = new Set();
           #dialect         ;
           #open = new Map              ();
  /** From the message of a call to the last message that continues it; never across a user message. */
           #spans = new Map                ();
  #last = -1;
  /** Whether the last message waits for a client-side tool. */
  #asksTool = false;

  constructor(dialect         ) {
    this.#dialect = dialect;
  }

  take({ message, provider: author }                                , number        )       {
    if (this.#dialect.chat) return;
    this.#last = number;
    if (message.role === 'user') {
      this.#open.clear();
      return;
    }
    this.#asksTool = message.content.some(isClientCall);
    for (const [index, part] of message.content.entries()) {
      const id = String(part.toolCallId);
      if (!isOwn(part, author, this.#dialect) || !this.#dialect.returns(part)) continue;
      if (
        part.type === 'tool-call' &&
        part.providerExecuted === true &&
        !this.ids.has(id) &&
        !this.#open.has(id)
      )
        this.#open.set(id, { message: number, index });
      const call = part.type === 'tool-result' ? this.#open.get(id) : undefined;
      if (call === undefined) continue;
      this.#open.delete(id);
      this.#keep(id, call);
      this.#pair(number, index);
    }
  }

  end()       {
    if (this.#dialect.pauses)
      for (const [id, call] of this.#open)
        if (call.message === this.#last || this.#asksTool) this.#keep(id, call);
    let to = -1;
    for (let number = 0; number <= this.#last; number += 1) {
      if (number <= to) this.continuing.add(number);
      to = Math.max(to, this.#spans.get(number) ?? -1);
    }
  }

  #keep(id        , { message, index }      )       {
    this.ids.add(id);
    this.#pair(message, index);
    this.#spans.set(message, this.#last);
  }

  #pair(message        , index        )       {
    this.paired.set(message, (this.paired.get(message) ?? new Set()).add(index));
  }
}
