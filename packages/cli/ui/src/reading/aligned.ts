import type { TimelineItem } from '../../../src/page/data.ts';

/** What stands side by side. */
export interface Pair {
  readonly a?: TimelineItem;
  readonly b?: TimelineItem;
}

/** The items of two timelines side by side: what a user said beside what the user said next on the other side. */
export function aligned(a: readonly TimelineItem[], b: readonly TimelineItem[]): readonly Pair[] {
  const [ofA, ofB] = [turnsOf(a), turnsOf(b)];
  return Array.from({ length: Math.max(ofA.length, ofB.length) }, (_, turn) => {
    const [left = [], right = []] = [ofA[turn], ofB[turn]];
    return Array.from({ length: Math.max(left.length, right.length) }, (_, i): Pair => {
      const [one, other] = [left[i], right[i]];
      return { ...(one !== undefined && { a: one }), ...(other !== undefined && { b: other }) };
    });
  }).flat();
}

/** Items by turn. The first turn is what stands before the first message of the user, and may be empty. */
function turnsOf(items: readonly TimelineItem[]): readonly (readonly TimelineItem[])[] {
  const turns: TimelineItem[][] = [[]];
  for (const item of items) {
    if (item.kind === 'message' && item.role === 'user' && item.aside !== true) turns.push([]);
    turns.at(-1)?.push(item);
  }
  return turns;
}
