import type { Entry, Seq } from '../entry/entry.ts';
import { isObject, type Json } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import type { Target } from './dialect.ts';
import { parsePolicy, policyText, rulesOf, type ViewPolicy } from './policy.ts';
import { beforeStart, beforeWindow, isStructural, type Selection, versionOf } from './select.ts';

/**
 * What a view was made of, so that it can be made again: the ranges of entries that were in and out of it,
 * both ends included. Within a range, kinds that views skip are skipped.
 */
export interface Manifest {
  /** The policy in the form of `policyText`. */
  readonly policy: string;
  /** The version of the view rules, one of `viewVersions`. */
  readonly version: number;
  /** The target provider. */
  readonly target?: string;
  /** The last position that was visible. */
  readonly head: Seq;
  readonly in: readonly (readonly [from: Seq, to: Seq])[];
  readonly out: readonly (readonly [from: Seq, to: Seq, why: string])[];
  /** How many tool outputs were pruned. */
  readonly pruned?: number;
  /** How many tokens of a model's window it took, as known when it was made. */
  readonly tokens: number;
  /** SHA-256 of the messages' compact JSON, lower-case hex. */
  readonly digest: string;
}

interface Made extends Pick<Manifest, 'tokens' | 'digest'> {
  readonly policy: ViewPolicy;
  readonly provider: string | undefined;
}

/**
 * Makes the manifest of a view. `all`: the entries that `view` received, all of a session's or those that the
 * view needs.
 */
export function manifestOf(
  all: readonly Entry[],
  selection: Selection,
  { policy, provider, tokens, digest }: Made,
): Manifest {
  const { start, entries, pruned } = selection;
  const head = all.reduce((most, { seq }) => Math.max(most, seq), 0);
  const shown = new Set([...(start === undefined ? [] : [start]), ...entries].map(({ seq }) => seq));
  const prunedIn = [...pruned.keys()].filter((seq) => shown.has(seq)).length;
  return {
    policy: policyText(policy),
    version: versionOf(selection),
    ...(provider !== undefined && { target: provider }),
    head,
    in: rangesOf([...shown].sort((a, b) => a - b)),
    out: outOf({
      floor: floorOf(all),
      head,
      shown,
      selection,
      structural: new Set(all.filter(isStructural).map(({ seq }) => seq)),
      isWindowed: rulesOf(policy).windows.length > 0,
    }),
    ...(prunedIn > 0 && { pruned: prunedIn }),
    tokens,
    digest,
  };
}

/**
 * What makes the view of a manifest again: `policy` and `at` for `store.views.entries`, `policy` and `target` for
 * `view`.
 */
export interface Remake {
  readonly policy: ViewPolicy;
  readonly target: Target;
  /** The last position that was visible. */
  readonly at: Seq;
}

/**
 * Returns how to make a view again from its manifest, as in `meta.view` of an answer; undefined if it is no
 * manifest.
 *
 * @example
 * ```ts
 * import { openTapeStore, remakeOf, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * const made = view(store.views.entries('main'));
 * const remake = remakeOf(JSON.parse(JSON.stringify(made.manifest())));
 * if (remake !== undefined) {
 *   const { policy, target, at } = remake;
 *   const again = view(store.views.entries('main', { policy, at }), { policy, target });
 *   console.log(again.digest === made.digest); // true
 * }
 * ```
 */
export function remakeOf(manifest: Json | undefined): Remake | undefined {
  if (!isObject(manifest)) return undefined;
  const { policy, head, target } = manifest;
  if (typeof policy !== 'string' || typeof head !== 'number') return undefined;
  try {
    return {
      policy: parsePolicy(policy),
      target: typeof target === 'string' ? { provider: target } : {},
      at: head,
    };
  } catch (error) {
    if (error instanceof TapeError) return undefined;
    throw error;
  }
}

/** Returns the position before the first one of the session. */
function floorOf(all: readonly Entry[]): Seq {
  const start = all.find((entry) => isStructural(entry) && entry.name === 'fork/start');
  if (start === undefined || !isObject(start.payload)) return 0;
  const { range } = start.payload;
  return Array.isArray(range) && typeof range[0] === 'number' ? range[0] - 1 : start.seq - 1;
}

function rangesOf(seqs: readonly Seq[]): readonly (readonly [Seq, Seq])[] {
  const ranges: [Seq, Seq][] = [];
  for (const seq of seqs) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === seq - 1) last[1] = seq;
    else ranges.push([seq, seq]);
  }
  return ranges;
}

interface Gaps {
  readonly floor: Seq;
  readonly head: Seq;
  readonly shown: ReadonlySet<Seq>;
  readonly selection: Selection;
  readonly structural: ReadonlySet<Seq>;
  readonly isWindowed: boolean;
}

/**
 * Returns the ranges that are not shown, with reasons. Unread entries are before the start or a window, or
 * rewound.
 */
function outOf({
  floor,
  head,
  shown,
  selection,
  structural,
  isWindowed,
}: Gaps): readonly (readonly [Seq, Seq, string])[] {
  const out: [Seq, Seq, string][] = [];
  const add = (from: Seq, to: Seq, reason: string) => {
    const last = out.at(-1);
    if (from > to) return;
    if (last !== undefined && last[1] === from - 1 && last[2] === reason) last[1] = to;
    else out.push([from, to, reason]);
  };
  const known = [...selection.reasons.keys()].filter((seq) => seq > floor).sort((a, b) => a - b);
  const first = known.find(
    (seq) => seq >= selection.keep && seq !== selection.start?.seq && shown.has(seq) && !structural.has(seq),
  );
  const unread = (from: Seq, to: Seq) => {
    const kept = Math.max(from, Math.min(selection.keep, to + 1));
    const windowed = Math.max(kept, Math.min(isWindowed ? (first ?? kept) : kept, to + 1));
    add(from, kept - 1, beforeStart(selection));
    add(kept, windowed - 1, beforeWindow);
    add(windowed, to, 'rewound');
  };
  let next = floor + 1;
  for (const seq of known) {
    unread(next, seq - 1);
    next = seq + 1;
    if (!shown.has(seq)) add(seq, seq, selection.reasons.get(seq)?.why ?? 'rewound');
  }
  unread(next, head);
  return out;
}
