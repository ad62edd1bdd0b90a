import type { Entry } from '../entry/entry.ts';
import type { LineageLine } from '../lineage/line.ts';
import { type LineageQuery, pageLines } from '../lineage/read.ts';
import type { Hit, SearchPlace, SearchQuery, SearchResult } from '../search/search.ts';
import type { Connection } from '../store/connection.ts';
import { entriesOn, searchOn } from '../store/entries.ts';
import { linesOn } from '../store/lineage.ts';
import type { EntryQuery, ViewQuery } from '../store/options.ts';
import { neededFor } from '../store/views.ts';
import type { Ref } from '../tape/tape.ts';
import { type Needed, neededEntries } from '../view/source.ts';
import { callOf } from './calls.ts';
import type { Runner } from './runner.ts';

/** How many entries are read by one act. */
const pageRows = 512;

/**
 * Reads what can be long, each page in an act of its own: an act runs again for each answer, and one that read all pages
 * would read the first again for each of the others.
 */
export class Pages {
  readonly #runner: Runner;
  readonly #at: Connection;

  constructor({ runner, at }: { readonly runner: Runner; readonly at: Connection }) {
    this.#runner = runner;
    this.#at = at;
  }

  /** Up to the head that the session has at first. */
  async *entries(ref: Ref, query: EntryQuery = {}): AsyncGenerator<Entry, void> {
    const { read } = entriesOn(this.#at);
    let { from, to, limit = Number.POSITIVE_INFINITY } = query;
    for (let isOver = false; !isOver; ) {
      const page = {
        ...query,
        ...(from !== undefined && { from }),
        ...(to !== undefined && { to }),
        // The last ones are found from the end.
        ...(query.last === undefined && { limit: Math.min(limit, pageRows) }),
      };
      const { found, head } = await this.#runner.run(
        () => {
          const all = [...read(ref, page)];
          const isLast = query.last !== undefined || all.length < pageRows || limit === pageRows;
          return { found: all, head: isLast ? undefined : this.#at.need(ref).head_seq };
        },
        callOf('entries.read', [ref, page]),
      );
      yield* found;
      limit -= found.length;
      from = (found.at(-1)?.seq ?? 0) + 1;
      to ??= head;
      isOver = head === undefined;
    }
  }

  /** What is to be read is found with the first page. */
  async *view(ref: Ref, query: ViewQuery = {}): AsyncGenerator<Entry, void> {
    let left: Needed | undefined;
    for (let after = 0; ; ) {
      const call =
        left === undefined ? callOf('views.entries', [ref, query]) : callOf('views.more', [ref, { after }]);
      const { found, all } = await this.#runner.run(() => {
        const all = left ?? neededFor(this.#at, ref, query);
        return { all, found: firstOf(neededEntries(this.#at.db, all, after), pageRows) };
      }, call);
      yield* found;
      if (found.length < pageRows) return;
      left = all;
      after = found.at(-1)?.seq ?? after;
    }
  }

  async *lines(query: LineageQuery = {}): AsyncGenerator<LineageLine, void> {
    for (let from = query.from; ; ) {
      const page = { ...query, ...(from !== undefined && { from }) };
      const found = await this.#runner.run(
        () => firstOf(linesOn(this.#at, page), pageLines),
        callOf('lineage.read', [page]),
      );
      yield* found;
      if (found.length < pageLines) return;
      from = (found.at(-1)?.g ?? 0) + 1;
    }
  }

  async search(query: SearchQuery): Promise<SearchResult> {
    const hits: Hit[] = [];
    for (let from: SearchPlace | undefined; ; ) {
      const page = await this.#runner.run(
        () => searchOn(this.#at, query, { from, found: hits.length }),
        callOf('entries.search', [query, { ...(from !== undefined && { before: from.before }) }]),
      );
      hits.push(...page.hits);
      if (page.next === undefined) return { hits, unsearched: page.unsearched, unindexed: 0 };
      from = page.next;
    }
  }
}

function firstOf<T>(items: Iterable<T>, count: number): readonly T[] {
  const first: T[] = [];
  for (const item of items) {
    first.push(item);
    if (first.length === count) break;
  }
  return first;
}
