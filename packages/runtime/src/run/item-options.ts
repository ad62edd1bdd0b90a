import type { Awaitable, InboxItem } from '@tapedeck/tape/store';
import type { RunOptions } from './options.ts';

/** The options that came with items of an inbox, for the runs of this process that take these up. */
export class ItemOptions {
  readonly #of = new Map<string, RunOptions>();
  /** Items that are being posted: a run must not take one up before its options are known. */
  readonly #posting = new Set<Promise<unknown>>();

  keep(item: string, options: RunOptions): void {
    if (Object.keys(options).length > 0) this.#of.set(item, options);
  }

  /** Posts an item, and keeps its options. */
  async post<T extends { readonly id: string }>(act: () => Awaitable<T>, options: RunOptions): Promise<T> {
    const posting = (async () => {
      const posted = await act();
      this.keep(posted.id, options);
      return posted;
    })();
    this.#posting.add(posting);
    try {
      return await posting;
    } finally {
      this.#posting.delete(posting);
    }
  }

  /** The options that came with the last of some items that has any. */
  async last(items: readonly InboxItem[]): Promise<RunOptions | undefined> {
    if (this.#posting.size > 0) await Promise.allSettled(this.#posting);
    const last = items.findLast(({ id }) => this.#of.has(id));
    return last === undefined ? undefined : this.#of.get(last.id);
  }

  clear(): void {
    this.#of.clear();
  }
}
