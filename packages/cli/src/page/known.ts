import type { HomeStore } from '@tapedeck/tape';

interface Known {
  changes: number;
  readonly of: Map<string, unknown>;
}

/** What was read of stores since the last change. */
const stores = new WeakMap<HomeStore, Known>();

/** What is kept of a store at a time. */
const keptMax = 8;

/**
 * Reads something of a store, or returns what was read before, if nothing was written since: the parts of a list are asked
 * for one after another, and what orders them costs more than they do.
 */
export function known<T>(store: HomeStore, what: string, read: () => T): T {
  const changes = store.changes();
  let at = stores.get(store);
  if (at?.changes !== changes) {
    at = { changes, of: new Map() };
    stores.set(store, at);
  }
  if (at.of.has(what)) return at.of.get(what) as T;
  const found = read();
  const [first] = at.of.keys();
  if (first !== undefined && at.of.size >= keptMax) at.of.delete(first);
  at.of.set(what, found);
  return found;
}
