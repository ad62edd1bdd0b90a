/** How much may wait for one reader: a number of values, and the sum of their sizes. */
export interface BacklogLimit {
  readonly values: number;
  readonly size: number;
}

/**
 * The values that wait for a reader. When more wait than the limit allows, the oldest are dropped, down to half of
 * it: a reader that never reads costs no more than that, and one that is slow continues from the newest.
 */
export class Backlog<T> {
  readonly #limit: BacklogLimit;
  #waiting: { readonly value: T; readonly size: number }[] = [];
  /** The place of the next value to take: those before it are taken. */
  #next = 0;
  #size = 0;
  #missed = 0;

  constructor(limit: BacklogLimit) {
    this.#limit = limit;
  }

  push(value: T, size: number): void {
    this.#waiting.push({ value, size });
    this.#size += size;
    if (!this.#exceeds(1)) return;
    while (this.#count > 1 && this.#exceeds(2)) {
      this.#shift();
      this.#missed += 1;
    }
  }

  /** Takes the oldest value; undefined when none waits. */
  take(): { readonly value: T } | undefined {
    return this.#shift();
  }

  /** How many values were dropped since the last call, all before the value that is next. */
  missed(): number {
    const missed = this.#missed;
    this.#missed = 0;
    return missed;
  }

  get #count(): number {
    return this.#waiting.length - this.#next;
  }

  #exceeds(share: number): boolean {
    return this.#count * share > this.#limit.values || this.#size * share > this.#limit.size;
  }

  #shift(): { readonly value: T } | undefined {
    const first = this.#waiting[this.#next];
    if (first === undefined) return undefined;
    this.#next += 1;
    this.#size -= first.size;
    // Taken values must not stay in memory, and moving the others each time would cost their number.
    if (this.#next * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    return first;
  }
}
