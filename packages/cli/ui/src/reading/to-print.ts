import type { Timeline, TimelineItem } from '../../../src/page/data.ts';

/** Asks for the items between two positions, and has the answer when it returns. */
export type AskNow = (from: number, to: number) => Timeline;

/** What is printed of a session. */
export interface Printed {
  readonly items: readonly TimelineItem[];
  /** The positions that it covers, both included. */
  readonly from: number;
  readonly to: number;
  /** Why what comes behind is not there, where it could not be loaded. */
  readonly error?: unknown;
}

/** The most positions, and characters of their items, that are printed: about as much as a thousand sheets of paper. */
const positionsMax = 5_000;
const charsMax = 6_000_000;

/** All of a session; of one that is longer than can be printed a part that begins at a position, or its last part. */
export function toPrint(
  ask: AskNow,
  { floor, head, at }: { readonly floor: number; readonly head: number; readonly at: number },
): Printed {
  const isWhole = head - floor <= positionsMax;
  const from = isWhole ? floor + 1 : Math.max(floor + 1, Math.min(at, head - positionsMax + 1));
  const last = Math.min(head, from + positionsMax - 1);
  const items: TimelineItem[] = [];
  let to = from - 1;
  for (let chars = 0; to < last && chars < charsMax; ) {
    let part: Timeline;
    try {
      part = ask(to + 1, last);
    } catch (error) {
      return { items, from, to, error };
    }
    const found = part.items.filter(({ seq }) => seq > to && seq <= last);
    items.push(...found);
    chars += JSON.stringify(found).length;
    to = Math.min(last, Math.max(part.to, to + 1));
  }
  return { items, from, to };
}
