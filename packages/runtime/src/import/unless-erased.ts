import type { HomeStore } from '@tapedeck/tape';
import { ToDoFirst } from '@tapedeck/tape/internal';
import { forgottenEvent } from '../imported/copy-notes.ts';
import { discardStaged } from './discard-staged.ts';
import type { Traces } from './traces.ts';

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
 * Runs an act of an import that commits nothing once another process has erased something since a look at the home that may be of
 * what it writes. So each transaction is one that came before or behind that act of the other process: there is no moment at which
 * what was erased is written, and no need to erase it later.
 * @param traces of what the act writes: without them, whatever was erased may be of it
 * @throws ErasedMeanwhile
 */
export function unlessErased<T>(
  store: HomeStore,
  { since, traces }: { readonly since: number; readonly traces?: Traces },
  act: () => T,
): T {
  let seen = since;
  const check = () => {
    const { entry, isErased, isNamed } = store.erasedBehind(seen, forgottenEvent);
    if (isErased && (isNamed || concerns(store, traces, { after: seen, to: entry })))
      throw new ErasedMeanwhile('something was erased while it was imported');
    seen = entry;
  };
  try {
    return store.checked(check, act);
  } catch (error) {
    if (error instanceof ErasedMeanwhile) discardStaged(store, () => error.staged);
    throw error;
  }
}

/** @throws ToDoFirst where the source has to be read before it can be told, which no other process should wait for */
function concerns(
  store: HomeStore,
  traces: Traces | undefined,
  { after, to }: { readonly after: number; readonly to: number },
): boolean {
  if (traces === undefined) return true;
  if (!traces.areRead) throw new ToDoFirst(() => traces.read());
  return store.erasedBetween(after, to)?.some((one) => traces.has(one)) !== false;
}
