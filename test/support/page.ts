import { type LivePage, type LiveSource, pageOf, type TimelineItem } from '@tapedeck/cli/internal';
import type { SqliteTapeStore } from '@tapedeck/tape';

/** A check that finds nothing. */
export const unchecked = async () => ({ sessions: 0, entries: 0, sections: {} });

/** What a page of these sessions reads. */
export function sourceOn(store: SqliteTapeStore): LiveSource {
  return {
    store,
    title: 'home',
    version: '0.0.0',
    inHome: (line) => line,
    check: unchecked,
    now: () => 0,
  };
}

/** What a page of these sessions is answered. */
export function pageOn(store: SqliteTapeStore, more: Partial<LiveSource> = {}): LivePage {
  return pageOf({ ...sourceOn(store), ...more });
}

/** The items of a session, read in parts of some positions: from the start on, or from the end back. */
export async function itemsInParts(
  page: LivePage,
  session: string,
  { size, backward = false, ...how }: { size: number; backward?: boolean; all?: boolean; hidden?: boolean },
): Promise<readonly TimelineItem[]> {
  const { floor, head } = await page.session({ session });
  const parts: (readonly TimelineItem[])[] = [];
  if (!backward)
    for (let from = floor + 1; from <= head; ) {
      const part = await page.timeline({ session, from, to: from + size - 1, ...how });
      parts.push(part.items);
      if (part.to < from) throw new Error(`the part from ${from} ends at ${part.to}`);
      from = part.to + 1;
    }
  else
    for (let to = head; to > floor; ) {
      const part = await page.timeline({ session, from: Math.max(floor + 1, to - size + 1), to, ...how });
      parts.unshift(part.items);
      if (part.from > to) throw new Error(`the part to ${to} begins at ${part.from}`);
      to = part.from - 1;
    }
  return parts.flat();
}
