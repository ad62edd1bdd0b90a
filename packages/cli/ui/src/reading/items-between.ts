import type { Timeline, TimelineItem } from '../../../src/page/data.ts';

/** Asks for the items between two positions, both included. */
export type AskItems = (from: number, to: number) => Promise<Timeline>;

/** The items between two positions, both included. An answer can cover fewer positions than were asked, and more. */
export async function itemsBetween(
  ask: AskItems,
  first: number,
  last: number,
): Promise<readonly TimelineItem[]> {
  const found: TimelineItem[] = [];
  for (let from = first; from <= last; ) {
    const part = await ask(from, last);
    found.push(...part.items.filter(({ seq }) => seq >= from && seq <= last));
    from = Math.max(from, part.to) + 1;
  }
  return found;
}
