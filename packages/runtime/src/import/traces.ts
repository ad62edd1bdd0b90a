import type { HomeStore } from '@tapedeck/tape';
import {
  type ErasedEntry,
  importedEvent,
  importOriginIn,
  ToDoFirst,
  type WrittenSession,
} from '@tapedeck/tape/internal';
import { withAncestors } from '../imported/ancestors.ts';
import { isByImport } from '../imported/by-import.ts';
import { isOfImport } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { idsHave, numbersOf } from '../lines/index.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import type { ImportPlan } from '../plan/plan.ts';
import type { Concerns } from './unless-changed.ts';

/** How many entries are looked at of what was written to a session: what two have in common, a copy begins with. */
const entriesMax = 50;

/**
 * What the records of a plan are known by, to tell whether what others erase or write while the plan is written may be of them, or of
 * what it goes on from. What is in doubt is taken for that.
 */
export class Traces implements Concerns {
  readonly #store: HomeStore;
  readonly #plan: ImportPlan;
  #known: ((trace: string) => boolean) | undefined;

  constructor(store: HomeStore, plan: ImportPlan) {
    [this.#store, this.#plan] = [store, plan];
  }

  erased({ session, key, was: { timestamp } }: ErasedEntry): boolean {
    if (withAncestors(this.#store, this.#plan.exportOf).includes(session)) return true;
    if (key === undefined) return false;
    // A title names no time, nor do records of which another file may have a copy under other keys.
    if (typeof timestamp !== 'string') return this.#isImported(session);
    return this.#has(timestamp) || this.#has(keyOf({ key }));
  }

  written({ id, from }: WrittenSession): boolean {
    const { format, session } = importOriginIn(this.#store, id)?.origin ?? {};
    const isSame = format === this.#plan.format && session === this.#plan.session;
    for (const entry of this.#store.entries.read(id, { own: true, from, limit: entriesMax })) {
      // What another import does with sessions of the same source may be a rewind, or a deletion.
      if (isSame && isByImport(entry)) return true;
      if (!isOfImport(entry)) continue;
      if (this.#has(keyOf(entry)) || this.#has(String(entry.meta.timestamp ?? ''))) return true;
    }
    return false;
  }

  #isImported(session: string): boolean {
    const [source] = this.#store.entries.read(session, { own: true, name: importedEvent, limit: 1 });
    return source !== undefined;
  }

  /** @throws ToDoFirst where the records have to be read first, for which no other process should wait */
  #has(trace: string): boolean {
    if (this.#known === undefined)
      throw new ToDoFirst(() => {
        this.#known = idsHave(numbersOf(tracesIn(this.#plan)));
      });
    return trace !== '' && this.#known(trace);
  }
}

/** The keys of all drafts, and when they were said. */
function* tracesIn({ conversations }: ImportPlan): Iterable<string> {
  for (const { spine, asides, shared = 0 } of conversations)
    for (const draft of [...spine.slice(shared), ...asides.map((one) => one.draft)]) {
      const { key = '', meta } = wholeDraft(draft);
      yield key;
      if (typeof meta?.timestamp === 'string') yield meta.timestamp;
    }
}
