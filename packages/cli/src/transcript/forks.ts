import type { HomeStore, Seq, SessionInfo } from '@tapedeck/tape';
import { isSummarizer, originOf } from '@tapedeck/tape/internal';
import { type Gap, type Item, isGap } from './fold.ts';
import { isWithin, type Wanted } from './wanted.ts';

/** A child that left at a position, or how many more did. */
export type Left = { readonly at: Seq } & (
  | { readonly child: SessionInfo }
  /** Infinite for a number that is not known. */
  | { readonly more: number }
);

export const isLeft = (shown: object): shown is Left => 'at' in shown;

/** Children that are looked up at once. */
const pageSize = 200;
/** Children that are named at one position. */
const namedMax = 5;

/** The children that left a session in a range of positions and of times, in the order of their places. */
export function* leftIn(
  store: Pick<HomeStore, 'sessions' | 'entries'>,
  parent: string,
  { from, to, ...times }: { readonly from: Seq; readonly to: Seq } & Pick<Wanted, 'after' | 'before'>,
): Generator<Left> {
  const hasTimes = times.after !== undefined || times.before !== undefined;
  const isThen = (child: SessionInfo) => !hasTimes || isWithin(timeOf(store, child), times);
  for (let leftFrom = from; leftFrom <= to; ) {
    const page = store.sessions.list({ parent, all: true, deleted: false, leftFrom, limit: pageSize });
    const isWhole = page.length < pageSize;
    const places = Map.groupBy(page, (child) => originOf(child).at);
    const last = [...places.keys()].at(-1) ?? to;
    for (const [at, children] of places) {
      if (at > to) return;
      // More may have left at the last position of a page than it has.
      if (!isWhole && at === last && at !== leftFrom) break;
      const made = children.filter((child) => !isSummarizer(child) && isThen(child));
      for (const child of made.slice(0, namedMax)) yield { at, child };
      const more = isWhole || at !== last ? made.length - namedMax : Number.POSITIVE_INFINITY;
      if (made.length > 0 && more > 0) yield { at, more };
    }
    if (isWhole) return;
    leftFrom = last === leftFrom ? last + 1 : last;
  }
}

/** When a child left: what an import found left long before the import made it, with its first message. */
function timeOf(store: Pick<HomeStore, 'entries'>, { id, createdAt }: SessionInfo): number {
  const [first] = store.entries.read(id, { own: true, kind: 'message', limit: 1 });
  return first?.sourceAt ?? createdAt;
}

/** Puts children between the items of a log: each behind the last item that it has read. */
export function* withForks(items: Iterable<Item | Gap>, left: Iterator<Left>): Generator<Item | Gap | Left> {
  let next = left.next();
  for (const item of items) {
    for (; next.done !== true && next.value.at < placeOf(item); next = left.next()) yield next.value;
    yield item;
  }
  for (; next.done !== true; next = left.next()) yield next.value;
}

/** The position at which an item stands, or a gap begins. */
export function placeOf(item: Item | Gap): Seq {
  return isGap(item) ? item.from : item.entry.seq;
}
