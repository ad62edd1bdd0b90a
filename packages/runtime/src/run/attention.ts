import type { InboxItem } from '@tapedeck/tape';
import { decide } from './queue.ts';
import type { RunControl } from './run.ts';

/** What an inbox asks of the run under way: to stop, or nothing but to be told that so many things wait. */
type Request = { readonly abort: string } | { readonly waiting: number };

/** Which items of a session's inbox its runs have dealt with, so that none stops a run that it was not meant for. */
export class Attention {
  /** What runs have begun with, and aborts that came too late: while they are still in the inbox they stop nothing. */
  readonly #dealtWith = new Set<string>();
  #known: ReadonlySet<string> = new Set();

  /** Says what a run begins with. */
  begin(control: RunControl, items: readonly InboxItem[]): void {
    control.take(items.map(({ id }) => id));
    this.spend(items);
  }

  /** From here on these stop nothing. */
  spend(items: readonly InboxItem[]): void {
    for (const { id } of items) this.#dealtWith.add(id);
  }

  /** The session is left: who runs it next looks at its inbox anew. */
  forget(): void {
    this.#dealtWith.clear();
  }

  /** What the items that wait ask of the run of an owner; nothing when all of them are known. */
  heed(waiting: readonly InboxItem[], owner: string | undefined): Request | undefined {
    const items = waiting.filter(({ id }) => !this.#dealtWith.has(id));
    if (items.length === 0) return undefined;
    const decision = decide(items, 'streaming', owner);
    const isNew = items.some(({ id }) => !this.#known.has(id));
    this.#known = new Set(items.map(({ id }) => id));
    if (decision.do === 'abort') return { abort: decision.reason };
    return isNew ? { waiting: items.length } : undefined;
  }
}
