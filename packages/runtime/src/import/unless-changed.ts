import type { HomeStore } from '@tapedeck/tape';
import { doingFirst, type ErasedEntry, type HomeHead, type WrittenSession } from '@tapedeck/tape/internal';
import { forgottenEvent } from '../imported/copy-notes.ts';
import { discardStaged } from './discard-staged.ts';

/**
 * Thrown where something was erased or written, or a source was forgotten, since an import has looked what is: the transaction that
 * meets it is undone, and the import begins anew.
 */
export class ChangedMeanwhile extends Error {
  /** What this import has staged, which no reader sees. */
  readonly staged: string[] = [];
}

/** What other processes do that concerns an import, since it would have written something else behind that. */
export interface Concerns {
  /** Whether an entry that was erased may be of what it writes. */
  erased(entry: ErasedEntry): boolean;
  /** Whether what was written to a session may be of what it writes, too. */
  written(session: WrittenSession): boolean;
}

/** Where a home is when an import looks what was erased in it: taken before the first of its questions. */
export function lookedAt(store: HomeStore): HomeHead {
  return store.homeHead();
}

/**
 * Runs an act of an import that commits nothing once another process has done what concerns it: has erased something since a look at
 * the home, or written something since the act began. So each transaction is one that came before or behind that of the other
 * process: there is no moment at which what was erased is written, and no need to erase it later; nor does one of two that import
 * the same records at once not know of the other.
 * @throws ChangedMeanwhile
 */
export function unlessChanged<T>(
  store: HomeStore,
  { since, concerns }: { readonly since: HomeHead; readonly concerns: Concerns },
  act: () => T,
): T {
  let seen = since;
  const check = (isWriting: boolean) => {
    const { head, isErased, isNamed, sessions } = store.changesBehind(seen, forgottenEvent);
    const erased = isErased ? store.erasedBetween(seen.entry, head.entry) : [];
    const isConcerned =
      isNamed ||
      erased?.some((one) => concerns.erased(one)) !== false ||
      (isWriting && sessions.some((one) => concerns.written(one)));
    if (isConcerned) throw new ChangedMeanwhile('others have changed what is imported');
    seen = head;
  };
  // What the act writes is no change by others, once it is committed.
  const behind = () => {
    const head = store.homeHead();
    return () => {
      seen = head;
    };
  };
  // The act looks at what was written before it begins.
  doingFirst(() => check(false));
  try {
    return store.watched({ before: () => check(true), behind }, act);
  } catch (error) {
    if (error instanceof ChangedMeanwhile) discardStaged(store, () => error.staged);
    throw error;
  }
}
