import type { Entry, Seq } from '../entry/entry.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { omittedMessages } from './omitted.ts';
import { rulesOf, type ViewBase, type ViewPolicy } from './policy.ts';
import { prunedOutputs } from './pruned.ts';
import { windowStart } from './window.ts';

/**
 * Versions of the selection and rendering rules: a new one when the same entries would give other messages. By rules 6
 * messages can be left out; a view that shows all is that of rules 5, and is recorded as such.
 */
export const viewVersions = [5, 6] as const;

/** The version of the rules by which a selection was made. */
export function versionOf({ omitted }: Pick<Selection, 'omitted'>): number {
  return viewVersions[omitted.size === 0 ? 0 : 1];
}

/** The entries that a view shows, in order, and the reason why each entry is in or out. */
export interface Selection {
  /** The entry whose state replaces all entries before it: a boundary, an anchor, or the fork's start. */
  readonly start: Entry | undefined;
  readonly entries: readonly Entry[];
  /** The first position shown, before windows narrow the view. */
  readonly keep: Seq;
  /** Positions of results whose outputs are pruned, with their former tokens; empty for a full view. */
  readonly pruned: ReadonlyMap<Seq, number>;
  /** Positions of messages that are left out; empty for a full view. */
  readonly omitted: ReadonlySet<Seq>;
  readonly reasons: ReadonlyMap<Seq, { readonly in: boolean; readonly why: string }>;
}

/**
 * Applies rewinds, then boundaries, windows, omissions and prunes, to the entries of a session. Pure. All entries and
 * only those that `store.views.entries` reads give the same selection.
 * @throws TAPE_BAD_POLICY; TAPE_NO_ANCHOR when the policy names an anchor that is not visible
 */
export function select(all: readonly Entry[], policy: ViewPolicy): Selection {
  const { base, windows } = rulesOf(policy);
  const reasons = new Map<Seq, { in: boolean; why: string }>();
  const structural = all.filter(isStructural);
  const intention = structural.find((e) => e.name === 'intention');
  const seen = visibleEntries(
    all.filter((e) => !isStructural(e)),
    reasons,
  );
  const start = startOf(seen, base);
  const keep =
    start === undefined
      ? positionOf(base, structural, all[0]?.session)
      : base === 'last-boundary'
        ? Math.min(start.ref ?? start.seq, start.seq)
        : start.seq;
  const begun: Entry[] = [];
  for (const entry of seen)
    if (entry === start) reasons.set(entry.seq, { in: true, why: 'its state begins the view' });
    else if (entry.seq < keep) reasons.set(entry.seq, { in: false, why: beforeStart({ start, keep }) });
    else {
      reasons.set(entry.seq, start !== undefined && entry.seq < start.seq ? keptTail : inView);
      begun.push(entry);
    }
  let shown: readonly Entry[] = begun;
  for (const { window } of windows) {
    const from = windowStart(shown.toReversed(), window, { isFull: base === 'full' }) ?? 0;
    for (const { seq } of shown) if (seq < from) reasons.set(seq, { in: false, why: beforeWindow });
    shown = shown.filter(({ seq }) => seq >= from);
  }
  const named = omittedMessages(base === 'full' ? [] : seen);
  const left = shown.filter(({ kind, seq }) => kind === 'message' && named.has(seq));
  const omitted = new Set(left.map(({ seq }) => seq));
  for (const seq of omitted) reasons.set(seq, { in: false, why: 'left out' });
  shown = shown.filter(({ seq }) => !omitted.has(seq));
  const pruned = prunedOutputs(base === 'full' ? [] : seen);
  for (const seq of pruned.keys())
    if (reasons.get(seq)?.in === true) reasons.set(seq, { in: true, why: 'in view, its output pruned' });
  for (const entry of structural)
    reasons.set(entry.seq, {
      in: true,
      why: entry === intention ? "the session's intention" : "the fork's start",
    });
  return {
    start: start ?? structural.find((e) => e.name === 'fork/start'),
    keep,
    entries: placeIntention(
      {
        kept: shown.filter(({ seq }) => start !== undefined && seq < start.seq),
        rest: shown.filter(({ seq }) => start === undefined || seq > start.seq),
        start,
        keep,
      },
      intention,
    ),
    pruned,
    omitted,
    reasons,
  };
}

const inView = { in: true, why: 'in view' } as const;
const keptTail = { in: true, why: 'kept tail' } as const;

/** The reason for entries before the start of a view. */
export function beforeStart({ start, keep }: Pick<Selection, 'start' | 'keep'>): string {
  return `before ${start?.name ?? ''}@${start?.seq ?? keep}`;
}

/** The reason for entries before a window. */
export const beforeWindow = 'older than the window';

/**
 * Returns whether an entry is a fork's own `fork/start` or `intention`: no rewind, boundary or policy hides
 * these.
 */
export function isStructural(entry: Entry): boolean {
  return (
    !entry.inherited && entry.mark === 'anchor' && (entry.name === 'fork/start' || entry.name === 'intention')
  );
}

/** Applies every rewind: `E(h) = E(to) ++ (r, h]`. */
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

function startOf(seen: readonly Entry[], base: ViewBase): Entry | undefined {
  if (base === 'full') return undefined;
  if (base === 'last-boundary') return seen.findLast((e) => e.mark === 'boundary');
  const { fromAnchor } = base;
  const anchors = seen.filter((e) => e.mark === 'anchor' || e.mark === 'boundary');
  if (typeof fromAnchor === 'number') return anchors.find(({ seq }) => seq === fromAnchor);
  const [, name = fromAnchor, back = '0'] = /^(.+)~(\d{1,6})$/.exec(fromAnchor) ?? [];
  return anchors.filter((e) => e.name === name).at(-1 - Number(back));
}

/**
 * Where a view starts whose `fromAnchor` is a position without an anchor, or one of a fork's own first marks.
 */
function positionOf(base: ViewBase, structural: readonly Entry[], session: string | undefined): Seq {
  if (typeof base === 'string') return 0;
  const { fromAnchor } = base;
  if (typeof fromAnchor === 'number') return fromAnchor;
  const seq = structural.find(({ name }) => name === fromAnchor)?.seq;
  if (seq !== undefined) return seq;
  throw new TapeError(
    'TAPE_NO_ANCHOR',
    `cannot view from anchor ${quote(fromAnchor)}: no visible anchor has this name`,
    {
      data: { name: fromAnchor, ...(session !== undefined && { session }) },
    },
  );
}

interface Parts {
  readonly kept: readonly Entry[];
  readonly rest: readonly Entry[];
  readonly start: Entry | undefined;
  readonly keep: Seq;
}

/** Puts a session's own intention after what it inherited, and again after each own boundary. */
function placeIntention({ kept, rest, start, keep }: Parts, intention: Entry | undefined): readonly Entry[] {
  if (intention === undefined) return [...kept, ...rest];
  if (start !== undefined && start.seq > intention.seq && keep > intention.seq)
    return [...kept, intention, ...rest];
  const entries = [...kept, ...rest];
  const at = entries.findIndex((e) => e.seq > intention.seq);
  return at === -1 ? [...entries, intention] : entries.toSpliced(at, 0, intention);
}
