import type { HomeStore } from '@tapedeck/tape';
import type { ErasedEntry } from '@tapedeck/tape/internal';
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
    const isKnown = (trace: string) => this.#has?.(trace) !== false;
    if (typeof timestamp === 'string' && isKnown(timestamp)) return true;
    const own = keyOf({ key });
    // What an import notes of a session, such as a title, is known by no record.
    return own !== '' && (isKnown(own) || own.startsWith('import:'));
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
