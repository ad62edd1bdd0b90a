import type { SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';

interface Found {
  /** The ULIDs of sessions, by their origins. */
  readonly live: ReadonlyMap<string, string>;
  /** By their origins, or by their names where nothing of them is left. */
  readonly deleted: ReadonlyMap<string, SessionInfo>;
}

/**
 * Which session came from which conversation, whatever its name is now. Reads the home when the first one is sought that has
 * not the name that its source gives it.
 */
export class Origins {
  readonly #store: SqliteTapeStore;
  #found: Found | undefined;

  constructor(store: SqliteTapeStore) {
    this.#store = store;
  }

  /** The session with this origin; the oldest one, if the user had several made. */
  find(origin: string): SessionInfo | undefined {
    const name = this.#read().live.get(origin);
    return name === undefined ? undefined : this.#store.sessions.find(name);
  }

  /** A session that had this origin, or at least the name, and was deleted. */
  findDeleted(origin: string, name: string): SessionInfo | undefined {
    const { deleted } = this.#read();
    return deleted.get(origin) ?? deleted.get(name);
  }

  #read(): Found {
    if (this.#found !== undefined) return this.#found;
    const live = new Map<string, string>();
    const deleted = new Map<string, SessionInfo>();
    for (const info of this.#store.sessions.list({ all: true })) {
      const origin = originOf(this.#store, info.id);
      if (!isDeleted(info)) {
        if (origin !== undefined && !live.has(origin)) live.set(origin, info.id);
      } else deleted.set(origin ?? info.session, info);
    }
    this.#found = { live, deleted };
    return this.#found;
  }
}

/** Where a session says that it comes from, as a text to compare. */
export function originOf(store: SqliteTapeStore, session: string): string | undefined {
  const [source] = store.entries.read(session, { own: true, name: 'import/source', limit: 1 });
  return source?.payload == null ? undefined : JSON.stringify(source.payload);
}
