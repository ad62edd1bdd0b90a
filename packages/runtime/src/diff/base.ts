import type { Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { parentOf } from '../terms/terms.ts';
import type { Placed } from './place.ts';

/** The point at which two sessions diverge. */
export interface CommonBase {
  /** The session on whose own tape it lies: one of the two, or a common ancestor. */
  readonly session: string;
  /** The last position up to which both show the same; 0 for the beginning. */
  readonly seq: Seq;
  /** The positions that both have, inclusive; null if one of them inherits none of these. */
  readonly shared: readonly [Seq, Seq] | null;
}

/**
 * The point at which two sessions diverge, by their lineage and by what is visible of it; undefined if they
 * share no tape.
 */
export async function commonBase(store: TapeStore, a: Placed, b: Placed): Promise<CommonBase | undefined> {
  const line = await lineOf(store, a);
  const other = await lineOf(store, b);
  const met = other.find(({ info }) => line.some((tape) => tape.info.id === info.id));
  const meets = line.find(({ info }) => info.id === met?.info.id);
  if (met === undefined || meets === undefined) return undefined;
  const fork = Math.min(met.hi, meets.hi);
  // Positions up to a floor are not part of the session: its fork left them out.
  const floor = Math.min(Math.max(a.info.floor, b.info.floor), fork);
  const seq = (firstDifference(a.visible, b.visible, { after: floor, to: fork }) ?? fork + 1) - 1;
  return {
    session: ownerOf(line, seq),
    seq,
    shared: seq > floor ? [floor + 1, seq] : null,
  };
}

/** A tape that a session reads, and the last position that it reads there. */
interface Reach {
  readonly info: SessionInfo;
  readonly hi: Seq;
}

/** The tapes that a session reads, its own first. */
async function lineOf(store: TapeStore, { info, at }: Placed): Promise<readonly Reach[]> {
  const line: Reach[] = [];
  let hi = at;
  for (let tape: SessionInfo | undefined = info; tape !== undefined; ) {
    line.push({ info: tape, hi });
    hi = Math.min(hi, tape.base);
    tape = await parentOf(store, tape);
  }
  return line;
}

/** The tape that owns a position: the first whose base lies below it. */
function ownerOf(line: readonly Reach[], seq: Seq): string {
  const owner = line.find(({ info }) => seq > info.base) ?? line.at(-1);
  return owner?.info.session ?? '';
}

type Ranges = readonly (readonly [Seq, Seq])[];

/** The first position in (`after`, `to`] that lies in only one of two lists of ranges. Pure. */
function firstDifference(
  a: Ranges,
  b: Ranges,
  { after, to }: { readonly after: Seq; readonly to: Seq },
): Seq | undefined {
  for (let at = after + 1; at <= to; ) {
    const [inA, inB] = [stretch(a, at), stretch(b, at)];
    if (inA.visible !== inB.visible) return at;
    at = Math.min(inA.end, inB.end) + 1;
  }
  return undefined;
}

/** Whether a position lies in a list of ranges, and the last position for which the same is true. */
function stretch(ranges: Ranges, at: Seq): { readonly visible: boolean; readonly end: Seq } {
  const next = ranges.find(([, hi]) => hi >= at);
  if (next === undefined) return { visible: false, end: Number.POSITIVE_INFINITY };
  const [lo, hi] = next;
  return lo <= at ? { visible: true, end: hi } : { visible: false, end: lo - 1 };
}
