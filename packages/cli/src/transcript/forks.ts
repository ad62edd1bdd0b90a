import type { Seq, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { isSummarizer } from '@tapedeck/tape/internal';
import { type Gap, type Item, isGap } from './fold.ts';

/** Children that left at one position. */
export interface Left {
  readonly at: Seq;
  readonly children: readonly SessionInfo[];
  /** How many more left there; infinite for a number that is not known. */
  readonly more: number;
}

/** Children that are looked up at once. */
const pageSize = 200;
/** Children that are named at one position. */
const namedMax = 5;

/** The children that left a session in a range of positions, in the order of their places. */
export function* leftIn(
  store: Pick<SqliteTapeStore, 'sessions'>,
  parent: string,
  { from, to }: { readonly from: Seq; readonly to: Seq },
): Generator<Left> {
  for (let leftFrom = from; leftFrom <= to; ) {
    const page = store.sessions.list({ parent, all: true, leftFrom, limit: pageSize });
    const isWhole = page.length < pageSize;
    const last = page.at(-1)?.base ?? to;
    for (const [at, children] of Map.groupBy(page, ({ base }) => base)) {
      if (at > to) return;
      // More may have left at the last position of a page than it has.
      if (!isWhole && at === last && at !== leftFrom) break;
      const made = children.filter((child) => !isSummarizer(child));
      const named = made.slice(0, namedMax);
      if (named.length > 0)
        yield {
          at,
          children: named,
          more: isWhole || at !== last ? made.length - named.length : Number.POSITIVE_INFINITY,
        };
    }
    if (isWhole) return;
    leftFrom = last === leftFrom ? last + 1 : last;
  }
}

/** Puts children between the items of a log: each behind the last item that it has read. */
export function* withForks(items: Iterable<Item | Gap>, left: Iterator<Left>): Generator<Item | Gap | Left> {
  let next = left.next();
  for (const item of items) {
    const seq = isGap(item) ? item.from : item.entry.seq;
    for (; next.done !== true && next.value.at < seq; next = left.next()) yield next.value;
    yield item;
  }
  for (; next.done !== true; next = left.next()) yield next.value;
}
