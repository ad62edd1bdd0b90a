import type { Db } from './db.ts';

/** Rows of one page have about so many characters of content at most, as far as the rows before them say. */
const pageChars = 2_000_000;

/** What is left of so many characters of long rows is collected at once: read and parsed, it takes several times its size. */
const uncollectedMax = 8_000_000;

/** A row with more is long. */
const longChars = 250_000;

/** A page grows to at most so many times the one before it. */
const growth = 4;

let uncollected = 0;

/** The columns of entries that can be long. */
interface Content {
  readonly payload: string | null;
  readonly meta: string | null;
}

/**
 * How many entries a page has, where some pages are read one after another: the first one has few, and each next one as many
 * as the lengths of those before allow. A database to which each page is a trip has pages of one size.
 */
export class PageSize {
  #rows: number;
  #longest = 0;
  readonly #first: number;
  readonly #most: number;

  constructor({ pageRows: { first, most } }: Pick<Db, 'pageRows'>) {
    this.#rows = first;
    this.#first = first;
    this.#most = most;
  }

  /**
   * How many to read next. Collects first what is left of long ones, in a process that lets programs do that: V8 itself would
   * wait for several times as much.
   */
  next(): number {
    if (uncollected >= uncollectedMax && globalThis.gc !== undefined) {
      globalThis.gc();
      uncollected = 0;
    }
    return this.#rows;
  }

  /** A page was read. */
  took(page: readonly Content[]): void {
    // What was long once counts for less and less: one long row among short ones must not make all later pages short.
    let longest = this.#longest / 2;
    for (const { payload, meta } of page)
      longest = Math.max(longest, (payload?.length ?? 0) + (meta?.length ?? 0));
    this.#longest = longest;
    if (longest > longChars) uncollected += page.length * longest;
    if (this.#first === this.#most || page.length < this.#rows) return;
    this.#rows = Math.max(1, Math.min(this.#most, page.length * growth, Math.floor(pageChars / longest)));
  }
}
