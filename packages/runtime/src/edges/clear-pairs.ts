import type { Clear } from '../copies/clears.ts';

/** So many milliseconds behind the moment at which a program left a session the next one begins, at most. */
export const within = 2_000;

/**
 * For each session that begins behind a `/clear` the one that was left just before it, of the moments of one directory. That is
 * sure where no other one begins between the two, and where each other moment that is as near has a nearer partner. Pure.
 */
export function pairsOf<One extends Clear>(moments: readonly One[]): ReadonlyMap<One, One> {
  const order = moments.toSorted((a, b) => a.at - b.at || Number(b.isLeft) - Number(a.isLeft));
  const isLeft = (place: number) => order[place]?.isLeft === true;
  const isNear = (place: number, at: number) => {
    const other = order[place];
    return other !== undefined && Math.abs(other.at - at) <= within;
  };
  const pairs = new Map<One, One>();
  for (const [place, one] of order.entries()) {
    const before = order[place - 1];
    if (one.isLeft || before?.isLeft !== true || !isNear(place - 1, one.at)) continue;
    let isSure = one.source !== before.source;
    for (let at = place - 2; isSure && isNear(at, one.at); at -= 1) isSure = !isLeft(at) || !isLeft(at + 1);
    for (let at = place + 1; isSure && isNear(at, before.at); at += 1) isSure = isLeft(at) || isLeft(at - 1);
    if (isSure) pairs.set(one, before);
  }
  return pairs;
}
