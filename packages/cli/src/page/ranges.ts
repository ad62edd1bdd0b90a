/** Positions from one to another, both included. */
export type Range = readonly [from: number, to: number];

/** The positions of some ranges that are in none of others. Both are in order, and do not overlap. Pure. */
export function differenceOf(some: readonly Range[], others: readonly Range[]): readonly Range[] {
  const left: Range[] = [];
  let at = 0;
  for (const [from, to] of some) {
    let next = from;
    while (at < others.length && (others[at]?.[1] ?? 0) < next) at += 1;
    for (let i = at; i < others.length; i += 1) {
      const [lo, hi] = others[i] ?? [to + 1, to + 1];
      if (lo > to) break;
      if (lo > next) left.push([next, lo - 1]);
      next = Math.max(next, hi + 1);
    }
    if (next <= to) left.push([next, to]);
  }
  return left;
}
