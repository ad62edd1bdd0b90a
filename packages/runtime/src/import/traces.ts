import type { HomeStore } from '@tapedeck/tape';
import { type ErasedEntry, importedEvent } from '@tapedeck/tape/internal';
import { withAncestors } from '../imported/ancestors.ts';
import { keyOf } from '../imported/imported.ts';
import { idsHave, numbersOf } from '../lines/index.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import type { ImportPlan } from '../plan/plan.ts';

/**
 * What the records of a plan are known by, to tell whether something that is erased while the plan is written may be one of them, or
 * what it goes on from. What is in doubt is taken for that.
 */
export class Traces {
  readonly #store: HomeStore;
  readonly #plan: ImportPlan;
  #has: ((trace: string) => boolean) | undefined;

  constructor(store: HomeStore, plan: ImportPlan) {
    [this.#store, this.#plan] = [store, plan];
  }

  /** Whether the records were read: all of a large source takes a while. */
  get areRead(): boolean {
    return this.#has !== undefined;
  }

  read(): void {
    this.#has = idsHave(numbersOf(tracesIn(this.#plan)));
  }

  /** Whether an entry that was erased may be of a record of the plan, or of what an exported session has, which it continues. */
  has({ session, key, was: { timestamp } }: ErasedEntry): boolean {
    if (withAncestors(this.#store, this.#plan.exportOf).includes(session)) return true;
    if (key === undefined) return false;
    if (typeof timestamp !== 'string') return this.#isOfImport(session);
    return [timestamp, keyOf({ key })].some((trace) => this.#has?.(trace) !== false);
  }

  /** Whether an entry that names no time may be of an import: a title, or a record of which another file may have a copy. */
  #isOfImport(session: string): boolean {
    const [source] = this.#store.entries.read(session, { own: true, name: importedEvent, limit: 1 });
    return source !== undefined;
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
