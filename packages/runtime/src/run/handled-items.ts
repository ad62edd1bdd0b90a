import type { InboxItem } from '@tapedeck/tape/store';
import { decide } from './queue.ts';
import type { RunControl } from './run.ts';

/** What an inbox requires of the current run: to abort, or to report the number of waiting items. */
type Request = { readonly abort: string } | { readonly waiting: number };

/** Remembers the inbox items that runs have handled, so that an item aborts no later run. */
export class HandledItems {
  /** Items that runs began with, and late aborts. They abort nothing while they are still in the inbox. */
  readonly #handled = new Set<string>();
  #known: ReadonlySet<string> = new Set();

  /** Records the items that a run begins with. */
  begin(control: RunControl, items: readonly InboxItem[]): void {
    control.take(items.map(({ id }) => id));
    this.add(items);
  }

  /** Marks items as handled. */
  add(items: readonly InboxItem[]): void {
    for (const { id } of items) this.#handled.add(id);
  }

  /** Clears the handled items when the lease is released. */
  clear(): void {
    this.#handled.clear();
  }

  /** What the waiting items require of an owner's run; undefined when all of them are known. */
  requestOf(waiting: readonly InboxItem[], owner: string | undefined): Request | undefined {
    const items = waiting.filter(({ id }) => !this.#handled.has(id));
    if (items.length === 0) return undefined;
    const decision = decide(items, 'streaming', owner);
    const isNew = items.some(({ id }) => !this.#known.has(id));
    this.#known = new Set(items.map(({ id }) => id));
    if (decision.do === 'abort') return { abort: decision.reason };
    return isNew ? { waiting: items.length } : undefined;
  }
}
