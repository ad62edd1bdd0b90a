import type { HomeStore } from '@tapedeck/tape';
import { forgottenEvent } from '../imported/copy-notes.ts';
import { discardStaged } from './discard-staged.ts';

/**
 * Thrown where something was erased, or a source was forgotten, since an import has looked what is: the transaction that meets it
 * is undone, and the import begins anew.
 */
export class ErasedMeanwhile extends Error {
  /** What this import has staged, which no reader sees. */
  readonly staged: string[] = [];
}

/** Where a home is when an import looks what was erased in it: taken before the first of its questions. */
export function lookedAt(store: HomeStore): number {
  return store.homeHead().entry;
}

/**
 * Runs an act of an import that commits nothing once another process has erased something since a look at the home. So each
 * transaction is one that came before or behind that act of the other process: there is no moment at which what was erased is
 * written, and no need to erase it later.
 * @throws ErasedMeanwhile
 */
export function unlessErased<T>(store: HomeStore, since: number, act: () => T): T {
  let seen = since;
  const check = () => {
    const { entry, isErased } = store.erasedBehind(seen, forgottenEvent);
    if (isErased) throw new ErasedMeanwhile('something was erased while it was imported');
    seen = entry;
  };
  try {
    return store.checked(check, act);
  } catch (error) {
    if (error instanceof ErasedMeanwhile) discardStaged(store, () => error.staged);
    throw error;
  }
}
