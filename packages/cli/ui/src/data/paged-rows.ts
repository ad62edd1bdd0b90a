import type { Page } from '../../../src/page/data.ts';

/** Asks for a part of a list: from its beginning, or from where the part before ended. */
export type AskPage<T> = (offset: number) => Promise<Page<T>>;

/** How many rows an answer has at most. */
const pageRows = 200;

/**
 * A list of which the parts in view are loaded, and reloaded when something changed. Of a list whose length is known any part
 * is loaded, of another one each part after the one before.
 */
export class PagedRows<T> {
  readonly #ask: AskPage<T>;
  readonly #changed: () => void;
  #rows: Loaded<T> = empty();
  #loading: Promise<void> | undefined;
  #last: readonly [first: number, last: number] = [0, 0];
  #isStale = false;
  #error: unknown;

  constructor(ask: AskPage<T>, changed: () => void) {
    this.#ask = ask;
    this.#changed = changed;
  }

  /** How many rows there are, as far as is known, and one more where there are more. */
  get count(): number {
    const { total, rows, next } = this.#rows;
    return total ?? rows.length + (next === undefined ? 0 : 1);
  }

  /** Whether `count` counts all rows. */
  get isCounted(): boolean {
    return this.#rows.next === undefined || this.#rows.total !== undefined;
  }

  /** Whether something of it is here. */
  get isLoaded(): boolean {
    return this.#rows !== empty();
  }

  /** Why the last part could not be loaded. */
  get error(): unknown {
    return this.#error;
  }

  /** The rows that are wanted: the first and the last. */
  get wanted(): readonly [first: number, last: number] {
    return this.#last;
  }

  /** A row, unless it is not loaded. */
  at(index: number): T | undefined {
    return this.#rows.rows[index];
  }

  /** Loads what is between two rows, both included. */
  want(first: number, last: number): void {
    this.#last = [first, Math.max(first, last)];
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
  }

  /** Loads what is in view anew. The rows stay as they are until then. */
  again(): void {
    this.#isStale = true;
    this.#error = undefined;
    this.want(...this.#last);
  }

  /** Replaces loaded rows at once, until they are loaded anew. */
  patch(change: (row: T) => T): void {
    this.#rows = { ...this.#rows, rows: this.#rows.rows.map((row) => row && change(row)) };
    this.#changed();
  }

  async #load(): Promise<void> {
    while (this.#error === undefined) {
      const [first, last] = this.#last;
      const isAnew = this.#isStale || !this.isLoaded;
      this.#isStale = false;
      try {
        if (isAnew) this.#rows = await this.#loadAnew(first, last);
        else {
          const offset = missing(this.#rows, first, last);
          if (offset === undefined) return;
          this.#rows = withPage(this.#rows, offset, await this.#ask(offset));
        }
      } catch (error) {
        this.#error = error;
      }
      this.#changed();
    }
  }

  /** The rows of a view, as they are now: those before it too, where no part is found without them. */
  async #loadAnew(first: number, last: number): Promise<Loaded<T>> {
    let rows = withPage<T>({ ...empty<T>(), rows: [] }, 0, await this.#ask(0));
    for (let offset = missing(rows, first, last); offset !== undefined; offset = missing(rows, first, last))
      rows = withPage(rows, offset, await this.#ask(offset));
    return rows;
  }
}

/** What is loaded of a list: rows at their places, of which some may be absent where the length is known. */
interface Loaded<T> {
  readonly rows: readonly T[];
  readonly total?: number;
  readonly next?: number;
}

const none: Loaded<never> = { rows: [] };

function empty<T>(): Loaded<T> {
  return none;
}

/** From where to ask for what a view lacks; undefined where it lacks nothing. */
function missing<T>({ rows, total, next }: Loaded<T>, first: number, last: number): number | undefined {
  if (total === undefined) return last >= rows.length ? next : undefined;
  for (let at = first; at <= Math.min(last, total - 1); at += 1)
    // A whole part, unless the beginning of that is here.
    if (rows[at] === undefined) {
      const begin = at - (at % pageRows);
      return rows[begin] === undefined ? begin : at;
    }
  return undefined;
}

function withPage<T>(loaded: Loaded<T>, offset: number, page: Page<T>): Loaded<T> {
  const { rows: found, total, next } = page;
  const rows = [...loaded.rows];
  const begin = total === undefined ? rows.length : offset;
  // A list that became shorter than it says.
  const length = total === undefined || found.length > 0 ? total : Math.min(total, offset);
  for (const [i, row] of found.entries()) rows[begin + i] = row;
  return { rows, ...(length !== undefined && { total: length }), ...(next !== undefined && { next }) };
}
