import type { Seq } from '../entry/entry.ts';

/** Positions, both ends included. Lists of ranges here are ascending, and no two of them meet. */
export type Range = readonly [from: Seq, to: Seq];

/** How many positions ranges have. */
export function sizeOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
}

/** The positions of either list. */
export function united(one: readonly Range[], other: readonly Range[]): readonly Range[] {
  const all: [Seq, Seq][] = [];
  for (const [from, to] of [...one, ...other].sort((a, b) => a[0] - b[0])) {
    const last = all.at(-1);
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else all.push([from, to]);
  }
  return all;
}

/** The positions of the first list that the second does not have. */
export function without(ranges: readonly Range[], others: readonly Range[]): readonly Range[] {
  return ranges.flatMap(([first, last]) => {
    const left: Range[] = [];
    let from = first;
    for (const [start, end] of others) {
      if (end < from) continue;
      if (start > last) break;
      if (start > from) left.push([from, start - 1]);
      from = end + 1;
    }
    return from <= last ? [...left, [from, last] as const] : left;
  });
}
