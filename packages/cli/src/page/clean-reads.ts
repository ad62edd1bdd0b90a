import type { Entry, HomeStore, SessionInfo } from '@tapedeck/tape';

/** Replaces the secrets in a value. */
export type Clean = <T>(value: T) => T;

/** A store whose entries have no secrets, and how many of them had some so far. */
export interface CleanReads {
  readonly store: HomeStore;
  redacted(): number;
}

/**
 * A store that gives entries without secrets: before a text is cut, where half of one would look like none. It finds each
 * session once: all that is read about many sessions names the same ones again and again.
 */
export function cleanReads(store: HomeStore, clean: Clean): CleanReads {
  const found = new Set<string>();
  function* cleaned(entries: Iterable<Entry>): Generator<Entry> {
    for (const entry of entries) {
      const [payload, meta] = [clean(entry.payload), clean(entry.meta)];
      const isSame = payload === entry.payload && meta === entry.meta;
      if (!isSame) found.add(`${entry.tape}@${entry.seq}`);
      yield isSame ? entry : { ...entry, payload, meta };
    }
  }
  const entries: HomeStore['entries'] = {
    ...store.entries,
    read: (ref, query) => cleaned(store.entries.read(ref, query)),
  };
  const sessions: HomeStore['sessions'] = { ...store.sessions, find: once(store.sessions.find) };
  const one = new Proxy(store, {
    get(target, key) {
      if (key === 'entries') return entries;
      if (key === 'sessions') return sessions;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { store: one, redacted: () => found.size };
}

function once(find: HomeStore['sessions']['find']): HomeStore['sessions']['find'] {
  const found = new Map<string, SessionInfo | undefined>();
  return (ref) => {
    if (!found.has(ref)) found.set(ref, find(ref));
    return found.get(ref);
  };
}
