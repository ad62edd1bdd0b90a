import { isObject } from '../entry/json.js';
import {               providerKey } from './dialect.js';
import { optionsFor } from './fit-part.js';
                                            

                                                       

/**
 * The ids of items that a provider stores. It refuses a request that has an item twice, so a message that repeats one
 * belongs to no provider.
 */
export class ItemIds {
           #seen = new Set        ();
           #dialect         ;

  constructor(dialect         ) {
    this.#dialect = dialect;
  }

  /** Returns the message; without its `providerOptions` and author when it repeats an id. */
  once(item         )          {
    const ids = this.#idsIn(item);
    const repeats = ids.some(({ id }) => this.#seen.has(id));
    for (const { id } of ids) this.#seen.add(id);
    // The parts of one item of reasoning have one id.
    const texts = ids.filter(({ isText }) => isText).map(({ id }) => id);
    if (!repeats && new Set(texts).size === texts.length) return item;
    const { role, content } = item.message;
    const bare = content.map(({ providerOptions: _, ...part }) => part)                  ;
    return { ...item, message: { role, content: bare }, provider: undefined };
  }

  #idsIn({ message, provider }         )                                                               {
    const { chat, provider: target } = this.#dialect;
    if (chat || message.role !== 'assistant') return [];
    if (provider !== undefined && providerKey(provider) !== target) return [];
    return message.content.flatMap(({ type, providerOptions }) =>
      Object.values(optionsFor(providerOptions, this.#dialect) ?? {}).flatMap((options) =>
        isObject(options) && typeof options.itemId === 'string'
          ? [{ id: options.itemId, isText: type === 'text' }]
          : [],
      ),
    );
  }
}
