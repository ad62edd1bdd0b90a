import type { HomeStore } from '@tapedeck/tape';

/** What is known of each store: made when it is sought first, and kept as long as the store is. */
export function ofStore<Known>(make: (store: HomeStore) => Known): (store: HomeStore) => Known {
  const known = new WeakMap<HomeStore, Known>();
  return (store) => {
    const found = known.get(store) ?? make(store);
    known.set(store, found);
    return found;
  };
}
