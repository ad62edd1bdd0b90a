import type { Entry, Seq } from './entry.ts';
import { type Interval, lastMarked, visible } from './interval.ts';
import { readEntries } from './read.ts';
import type { Db } from './sqlite.ts';
import type { TapeRow } from './tapes.ts';

/** Which entries a view needs: all that is visible, what follows the last boundary, or what follows a position. */
export type Reach = 'full' | 'last-boundary' | { readonly from: Seq };

/**
 * The entries that `view` needs, in order and no others, so that reading the current view costs the same however
 * long the history is.
 */
export function* viewEntries(
  db: Db,
  tape: TapeRow,
  { reach, head }: { reach: Reach; head: Seq },
): Generator<Entry> {
  const spans = reachSpans(db, tape, { reach, head }).reverse();
  const extra = structuralEntries(db, tape, head).filter(
    ({ seq }) => !spans.some(({ lo, hi }) => seq > lo && seq <= hi),
  );
  for (const span of spans) {
    while (extra[0] !== undefined && extra[0].seq <= span.lo) yield* extra.splice(0, 1);
    yield* readEntries(db, tape, { from: span.lo + 1, to: span.hi });
  }
  yield* extra;
}

/** The spans to read, newest first. */
function reachSpans(db: Db, tape: TapeRow, { reach, head }: { reach: Reach; head: Seq }): Interval[] {
  if (reach === 'full') return [...visible(db, tape, head)];
  const spans: Interval[] = [];
  let keep = typeof reach === 'object' ? reach.from : undefined;
  for (const interval of visible(db, tape, head)) {
    if (keep === undefined) {
      const boundary = lastMarked(db, tape, 'boundary', interval);
      if (boundary !== undefined) keep = Math.min(boundary.ref ?? boundary.seq, boundary.seq);
    }
    const lo = keep === undefined ? interval.lo : Math.max(interval.lo, keep - 1);
    if (lo < interval.hi) spans.push({ lo, hi: interval.hi });
    if (keep !== undefined && interval.lo < keep) break;
  }
  return spans;
}

/** A fork's own `fork/start` and `intention`: no rewind or boundary hides them. */
function structuralEntries(db: Db, tape: TapeRow, head: Seq): Entry[] {
  if (tape.parent_id === null) return [];
  const to = Math.min(tape.base_seq + 2, head);
  return [...readEntries(db, tape, { from: tape.base_seq + 1, to, own: true })].filter(
    ({ name }) => name === 'fork/start' || name === 'intention',
  );
}
