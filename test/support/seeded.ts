/** Numbers that look random and are equal in every run of a seed. */
export interface Random {
  /** A whole number from 0 up to, not including, `n`. */
  below(n: number): number;
  /** True in this many of a hundred cases. */
  chance(percent: number): boolean;
  /** One of these; there must be one. */
  of<T>(items: readonly T[]): T;
  /** The same items in another order. */
  shuffled<T>(items: readonly T[]): T[];
}

/** The generator "mulberry32": small, quick, and good enough to choose acts. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  const below = (n: number) => Math.floor(next() * n);
  const of = <T>(items: readonly T[]): T => {
    const item = items[below(items.length)];
    if (item === undefined) throw new TypeError('nothing to choose from');
    return item;
  };
  const shuffled = <T>(items: readonly T[]): T[] => {
    const left = [...items];
    return items.flatMap(() => left.splice(below(left.length), 1));
  };
  return { below, chance: (percent) => below(100) < percent, of, shuffled };
}
