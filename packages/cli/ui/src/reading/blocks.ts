import type { TimelineItem } from '../../../src/page/data.ts';
import { type AskItems, itemsBetween } from './items-between.ts';

/** How many positions are loaded at a time. */
export const blockSize = 200;

/** How many blocks before and behind those in view stay loaded. */
const kept = 2;

/** The positions of a session, in blocks of 200 of which those in view are loaded, and those far from it dropped. */
export class Blocks {
  readonly #ask: AskItems;
  readonly #changed: () => void;
  readonly #loaded = new Map<number, { readonly items: readonly TimelineItem[]; readonly round: number }>();
  #round = 0;
  #wanted: readonly [first: number, last: number] = [0, -1];
  #isLoading = false;
  #error: unknown;
  readonly floor: number;
  #head: number;

  constructor(
    ask: AskItems,
    { floor, head }: { readonly floor: number; readonly head: number },
    changed: () => void,
  ) {
    this.#ask = ask;
    this.floor = floor;
    this.#head = head;
    this.#changed = changed;
  }

  get head(): number {
    return this.#head;
  }

  get count(): number {
    return Math.ceil((this.#head - this.floor) / blockSize);
  }

  /** Why the last block could not be loaded. */
  get error(): unknown {
    return this.#error;
  }

  /** How many blocks are loaded. */
  get loaded(): number {
    return this.#loaded.size;
  }

  /** The block of a position. */
  blockOf(seq: number): number {
    const block = Math.floor((seq - this.floor - 1) / blockSize);
    return Math.max(0, Math.min(this.count - 1, block));
  }

  /** The items that begin in a block, unless it is not loaded. */
  items(block: number): readonly TimelineItem[] | undefined {
    return this.#loaded.get(block)?.items;
  }

  /** Loads some blocks, the first to the last of them, and drops those far from them. */
  want(first: number, last: number): void {
    this.#wanted = [Math.max(0, first), Math.min(this.count - 1, last)];
    void this.#load();
  }

  /** Loads anew what is in view: the session has become longer, or a rewind hides some of it. */
  again(head = this.#head): void {
    this.#head = Math.max(this.#head, head);
    this.#round += 1;
    this.#error = undefined;
    this.want(...this.#wanted);
  }

  async #load(): Promise<void> {
    if (this.#isLoading) return;
    this.#isLoading = true;
    for (let block = this.#missing(); block !== undefined; block = this.#missing()) {
      const round = this.#round;
      try {
        const items = await this.#itemsOf(block);
        this.#loaded.set(block, { items, round });
        this.#drop();
      } catch (error) {
        this.#error = error;
      }
      this.#changed();
    }
    this.#isLoading = false;
  }

  /** A block in view that is not loaded, or not since something changed. */
  #missing(): number | undefined {
    if (this.#error !== undefined) return undefined;
    const [first, last] = this.#wanted;
    for (let block = first; block <= last; block += 1)
      if (this.#loaded.get(block)?.round !== this.#round) return block;
    return undefined;
  }

  #drop(): void {
    const [first, last] = this.#wanted;
    for (const [block, { round }] of this.#loaded) {
      const isNear = block >= first - kept && block <= last + kept;
      if (!isNear || (round !== this.#round && (block < first || block > last))) this.#loaded.delete(block);
    }
  }

  async #itemsOf(block: number): Promise<readonly TimelineItem[]> {
    const first = this.floor + 1 + block * blockSize;
    return await itemsBetween(this.#ask, first, Math.min(this.#head, first + blockSize - 1));
  }
}
