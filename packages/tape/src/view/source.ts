import type { Db } from '../db/db.ts';
import type { Entry, Seq } from '../entry/entry.ts';
import { type Interval, lastMarked, visible } from '../tape/interval.ts';
import { resolvePoint } from '../tape/point.ts';
import { readEntries } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';
import { rulesOf, type ViewBase, type ViewPolicy, type ViewWindow } from './policy.ts';
import { isStructural } from './select.ts';
import { windowStart } from './window.ts';

/**
 * Reads, in order, only the entries that `view` needs for a policy: the cost of the current view, or of a
 * window, does not grow with the history.
 * @param tape the session as of the head to read
 * @throws TAPE_BAD_POLICY, TAPE_NO_ANCHOR
 */
export function* viewEntries(db: Db, tape: TapeRow, policy: ViewPolicy): Generator<Entry> {
  yield* neededEntries(db, needed(db, tape, policy));
}

/** What is to be read of a session. */
export interface Needed {
  readonly tape: TapeRow;
  /** Newest first. */
  readonly spans: readonly Interval[];
  /** Single entries outside all spans, in order. */
  readonly extra: readonly Entry[];
}

/** Reads, in order, the entries that are needed, or those after a position. */
export function* neededEntries(db: Db, { tape, spans, extra }: Needed, after: Seq = 0): Generator<Entry> {
  const left = extra.filter(({ seq }) => seq > after);
  for (const { lo, hi } of spans.toReversed()) {
    while (left[0] !== undefined && left[0].seq <= lo) yield* left.splice(0, 1);
    if (hi > after) yield* readEntries(db, tape, { from: Math.max(lo, after) + 1, to: hi });
  }
  yield* left;
}

/**
 * Finds what is to be read of a session for a policy.
 * @throws TAPE_BAD_POLICY, TAPE_NO_ANCHOR
 */
export function needed(db: Db, tape: TapeRow, policy: ViewPolicy): Needed {
  const { base, windows } = rulesOf(policy);
  const { spans, start } = begun(db, tape, base);
  const shown = windowed(db, tape, spans, { windows, isFull: base === 'full' });
  const isMissing = start !== undefined && isIn(spans, start) && !isIn(shown, start);
  const single = [
    ...structuralEntries(db, tape),
    ...(isMissing ? readEntries(db, tape, { from: start, to: start }) : []),
  ];
  const extra = single
    .filter(
      (entry, i) =>
        entry.mark !== undefined &&
        !isIn(shown, entry.seq) &&
        single.findIndex(({ seq }) => seq === entry.seq) === i,
    )
    .toSorted((a, b) => a.seq - b.seq);
  return { tape, spans: shown, extra };
}

function isIn(spans: readonly Interval[], seq: Seq): boolean {
  return spans.some(({ lo, hi }) => seq > lo && seq <= hi);
}

interface Begun {
  readonly spans: readonly Interval[];
  /** The entry that begins the view. */
  readonly start?: Seq | undefined;
}

function begun(db: Db, tape: TapeRow, base: ViewBase): Begun {
  if (base === 'full') return { spans: [...visible(db, tape, tape.head_seq)] };
  return base === 'last-boundary' ? sinceBoundary(db, tape) : since(db, tape, base.fromAnchor);
}

/** The entries after the last boundary, and its kept tail. */
function sinceBoundary(db: Db, tape: TapeRow): Begun {
  const spans: Interval[] = [];
  for (const interval of visible(db, tape, tape.head_seq)) {
    const boundary = lastMarked(db, tape, 'boundary', interval);
    if (boundary !== undefined)
      return {
        spans: [
          ...spans,
          ...clipped(db, tape, interval, Math.min(boundary.ref ?? boundary.seq, boundary.seq)),
        ],
        start: boundary.seq,
      };
    if (interval.lo < interval.hi) spans.push(interval);
  }
  return { spans };
}

/** The visible part of an interval and what precedes it, from a position on. */
function clipped(db: Db, tape: TapeRow, { hi }: Interval, keep: Seq): readonly Interval[] {
  const spans: Interval[] = [];
  for (const interval of visible(db, tape, hi)) {
    const lo = Math.max(interval.lo, keep - 1);
    if (lo < interval.hi) spans.push({ lo, hi: interval.hi });
    if (interval.lo < keep) break;
  }
  return spans;
}

function since(db: Db, tape: TapeRow, anchor: Seq | string): Begun {
  const seq = resolvePoint(db, tape, anchor);
  return { spans: clipped(db, tape, { lo: 0, hi: tape.head_seq }, seq), start: seq };
}

/** Narrows spans to windows. */
function windowed(
  db: Db,
  tape: TapeRow,
  spans: readonly Interval[],
  { windows, isFull }: { readonly windows: readonly ViewWindow[]; readonly isFull: boolean },
): readonly Interval[] {
  let left = spans;
  for (const { window } of windows) {
    const from = windowStart(newestFirst(db, tape, left), window, { isFull });
    if (from !== undefined)
      left = left.flatMap(({ lo, hi }) => (hi < from ? [] : [{ lo: Math.max(lo, from - 1), hi }]));
  }
  return left;
}

/** Page sizes of backward reads: what is near the end is found with the first, what is far with few. */
const pageRows = { first: 64, most: 1_024 };

/** Reads spans backwards, newest entry first, without a fork's own `fork/start` and `intention`. */
export function* newestFirst(db: Db, tape: TapeRow, spans: Iterable<Interval>): Generator<Entry> {
  let rows = pageRows.first;
  for (const { lo, hi } of spans)
    for (let to = hi; to > lo; ) {
      const page = [...readEntries(db, tape, { from: Math.max(lo, to - rows) + 1, to })];
      for (const entry of page.reverse()) if (!isStructural(entry)) yield entry;
      to -= rows;
      rows = Math.min(rows * 2, pageRows.most);
    }
}

/** Reads a fork's own `fork/start` and `intention`. */
function structuralEntries(db: Db, tape: TapeRow): Entry[] {
  if (tape.parent_id === null) return [];
  const to = Math.min(tape.base_seq + 2, tape.head_seq);
  return [...readEntries(db, tape, { from: tape.base_seq + 1, to, own: true })].filter(isStructural);
}
