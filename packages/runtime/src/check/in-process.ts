import { SqliteTapeStore, type TapeStore } from '@tapedeck/tape';

/** The store itself, if it answers at once from a database of this process; undefined for any other. */
export function inProcess(store: TapeStore): SqliteTapeStore | undefined {
  return store instanceof SqliteTapeStore && typeof store.changes() === 'number' ? store : undefined;
}
