import { hash } from 'node:crypto';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { ofStore } from './of-store.ts';

/**
 * What sessions are known as: a text that changes when one is written, or one that it was forked from, in which what it inherits
 * may be erased. Each is looked at once, as long as nothing is written to the home: of many that were forked from each other, an
 * import asks for each again and again.
 */
class States {
  readonly #store: HomeStore;
  readonly #known = new Map<string, string>();
  #home = '';

  constructor(store: HomeStore) {
    this.#store = store;
  }

  of(session: string): string {
    const { entry, line } = this.#store.homeHead();
    const home = `${entry} ${line}`;
    if (home !== this.#home) this.#known.clear();
    this.#home = home;
    const state = this.#known.get(session) ?? this.#lookAt(session);
    this.#known.set(session, state);
    return state;
  }

  #lookAt(session: string): string {
    const unknown: SessionInfo[] = [];
    let state = '';
    for (let info = this.#store.sessions.find(session); info !== undefined; ) {
      const known = this.#known.get(info.id);
      state = known ?? '';
      if (known !== undefined) break;
      // A forged home can have parents in a circle.
      this.#known.set(info.id, '');
      unknown.push(info);
      info = info.parentId === undefined ? undefined : this.#store.sessions.find(info.parentId);
    }
    for (const { id, headHash } of unknown.reverse()) {
      state = hash('sha256', `${id} ${headHash} ${state}`, 'base64url');
      this.#known.set(id, state);
    }
    return state;
  }
}

export const statesIn: (store: HomeStore) => States = ofStore((store) => new States(store));
