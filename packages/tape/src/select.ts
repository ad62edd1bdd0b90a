import type { Entry, Seq } from './entry.ts';
import { prunedOutputs } from './pruned.ts';

/** Which part of what is visible a view shows. */
export type ViewPolicy =
  | 'last-boundary'
  | 'full'
  /** From an anchor on, by its position or its name (the last of that name). */
  | { readonly fromAnchor: Seq | string };

/** Version of the selecting and rendering rules: it changes when the same entries would give other messages. */
export const viewVersion = 3;

/** What a view shows, in order, and why each entry is in or out. */
export interface Selection {
  /** The entry whose state stands for all that came before: a boundary, an anchor, or the fork's start. */
  readonly start: Entry | undefined;
  readonly entries: readonly Entry[];
  /** Positions of results whose outputs are left out, with the tokens that they were; none of a full view. */
  readonly pruned: ReadonlyMap<Seq, number>;
  readonly reasons: ReadonlyMap<Seq, { readonly in: boolean; readonly why: string }>;
}

/**
 * Applies rewinds, then boundaries and prunes, to the entries of a session. Pure; given all entries or
 * only those that `viewEntries` reads, it selects the same.
 */
export function select(all: readonly Entry[], policy: ViewPolicy): Selection {
  const reasons = new Map<Seq, { in: boolean; why: string }>();
  const structural = all.filter(isStructural);
  const intention = structural.find((e) => e.name === 'intention');
  const seen = visibleEntries(
    all.filter((e) => !isStructural(e)),
    reasons,
  );
  const start = startOf(seen, policy);
  const keep =
    start === undefined
      ? positionOf(policy)
      : policy === 'last-boundary'
        ? Math.min(start.ref ?? start.seq, start.seq)
        : start.seq;
  const kept: Entry[] = [];
  const rest: Entry[] = [];
  for (const entry of seen) {
    if (entry === start) reasons.set(entry.seq, { in: true, why: 'its state begins the view' });
    else if (entry.seq < keep)
      reasons.set(entry.seq, { in: false, why: `before ${start?.name ?? ''}@${start?.seq ?? keep}` });
    else {
      reasons.set(entry.seq, {
        in: true,
        why: start !== undefined && entry.seq < start.seq ? 'kept tail' : 'in view',
      });
      (start !== undefined && entry.seq < start.seq ? kept : rest).push(entry);
    }
  }
  const pruned = prunedOutputs(policy === 'full' ? [] : seen);
  for (const seq of pruned.keys())
    if (reasons.get(seq)?.in === true) reasons.set(seq, { in: true, why: 'in view, its output pruned' });
  for (const entry of structural)
    reasons.set(entry.seq, {
      in: true,
      why: entry === intention ? 'what this session is for' : 'its beginning',
    });
  return {
    start: start ?? structural.find((e) => e.name === 'fork/start'),
    entries: placeIntention({ kept, rest, start, keep }, intention),
    pruned,
    reasons,
  };
}

function isStructural(entry: Entry): boolean {
  return (
    !entry.inherited && entry.mark === 'anchor' && (entry.name === 'fork/start' || entry.name === 'intention')
  );
}

/** What is left when every rewind has been applied: `E(h) = E(to) ++ (r, h]`. */
function visibleEntries(
  entries: readonly Entry[],
  reasons: Map<Seq, { in: boolean; why: string }>,
): readonly Entry[] {
  const rewinds = entries.filter((e) => e.mark === 'rewind');
  if (rewinds.length === 0) return entries;
  const shown: { lo: Seq; hi: Seq }[] = [];
  let hi = entries.at(-1)?.seq ?? 0;
  for (let i = rewinds.length - 1; i >= 0; i -= 1) {
    const rewind = rewinds[i];
    if (rewind === undefined || rewind.seq > hi) continue;
    shown.push({ lo: rewind.seq, hi });
    hi = Math.min(rewind.ref ?? 0, rewind.seq - 1);
  }
  shown.push({ lo: 0, hi });
  const spans = shown.reverse();
  let at = 0;
  return entries.filter((entry) => {
    while (at < spans.length && entry.seq > (spans[at]?.hi ?? 0)) at += 1;
    const inside = at < spans.length && entry.seq > (spans[at]?.lo ?? 0);
    if (!inside) reasons.set(entry.seq, { in: false, why: entry.mark === 'rewind' ? 'a rewind' : 'rewound' });
    return inside;
  });
}

function startOf(seen: readonly Entry[], policy: ViewPolicy): Entry | undefined {
  if (policy === 'full') return undefined;
  if (policy === 'last-boundary') return seen.findLast((e) => e.mark === 'boundary');
  const { fromAnchor } = policy;
  return seen.findLast(
    (e) =>
      (e.mark === 'anchor' || e.mark === 'boundary') &&
      (typeof fromAnchor === 'number' ? e.seq === fromAnchor : e.name === fromAnchor),
  );
}

/** Where a view begins that was asked for from a position with no anchor at it. */
function positionOf(policy: ViewPolicy): Seq {
  return typeof policy === 'object' && typeof policy.fromAnchor === 'number' ? policy.fromAnchor : 0;
}

interface Parts {
  readonly kept: readonly Entry[];
  readonly rest: readonly Entry[];
  readonly start: Entry | undefined;
  readonly keep: Seq;
}

/** A session's own intention follows what it inherited, and comes again after each own boundary. */
function placeIntention({ kept, rest, start, keep }: Parts, intention: Entry | undefined): readonly Entry[] {
  if (intention === undefined) return [...kept, ...rest];
  if (start !== undefined && start.seq > intention.seq && keep > intention.seq)
    return [...kept, intention, ...rest];
  const entries = [...kept, ...rest];
  const at = entries.findIndex((e) => e.seq > intention.seq);
  return at === -1 ? [...entries, intention] : entries.toSpliced(at, 0, intention);
}
