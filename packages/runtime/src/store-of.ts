import { HomeStore, type TapeStore } from '@tapedeck/tape';
import { SessionError } from './errors.ts';

/** What a question about sessions is asked of: a store, or what has one, such as a deck. */
export type StoreSource = TapeStore | { readonly store: TapeStore };

/**
 * The store of a source.
 * @throws SESSION_BAD_INPUT for anything else
 */
export function storeOf(source: StoreSource, act: string): TapeStore {
  // A deck has `sessions`, too, and no `entries`.
  for (const one of [source, (source as { store?: unknown } | null | undefined)?.store])
    if (typeof one === 'object' && one !== null && 'sessions' in one && 'entries' in one)
      return one as TapeStore;
  throw new SessionError('SESSION_BAD_INPUT', `cannot ${act}: that is neither a store nor a deck`);
}

/** The store itself, if it answers at once from a database of this process; undefined for any other. */
export function inProcess(store: TapeStore): HomeStore | undefined {
  return store instanceof HomeStore && typeof store.changes() === 'number' ? store : undefined;
}
