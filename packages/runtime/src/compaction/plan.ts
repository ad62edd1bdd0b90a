import {
  type Entry,
  entryTokens,
  estimateTokens,
  isObject,
  isPrune,
  type JsonObject,
  type Manifest,
  renderState,
  type Seq,
  type StoredMessage,
  select,
  view,
} from '@tapedeck/tape';
import type { ModelWindow } from '../model/window.ts';
import { cutPoint } from './cut-point.ts';
import { withoutFileTags } from './file-sets.ts';
import { type Keep, type ResolvedPolicy, usableOf } from './policy.ts';

/** What a summary is to stand for, and what it is made of. */
export interface CompactionPlan {
  /** Where the tail begins that stays. */
  readonly cut: Seq;
  /** Less of a tail stays than should, or more. */
  readonly warning: string | undefined;
  /** What of the view goes, in order. */
  readonly gone: readonly Entry[];
  /** The same as a model sees it. */
  readonly messages: readonly StoredMessage[];
  /** What the view was made of: what goes is what of it lies before the cut. */
  readonly manifest: Manifest;
  readonly previous: Previous;
  /** The first and last position that it stands for, those of the summary before it too. */
  readonly range: readonly [Seq, Seq];
  /** The part of these that it is made of, as a fork takes it: positions after `since`. */
  readonly span: { readonly since: Seq; readonly cut: Seq };
}

/** What a view begins with: the summary that the next one brings up to date. */
interface Previous {
  /** Undefined where nothing stands for what came before. */
  readonly text: string | undefined;
  readonly seq: Seq | undefined;
  readonly state: JsonObject;
  /** Where what it stands for begins. */
  readonly from: Seq | undefined;
  /** How many messages of users it stands for; 0 where it does not say. */
  readonly turns: number;
}

interface PlanOptions {
  readonly policy: ResolvedPolicy;
  readonly window: ModelWindow | undefined;
  readonly keep: Keep;
}

/** About what is left of an output that was left out. */
const prunedTokens = 40;

/** Where to cut what a view is made of, and what that takes out of it; nothing where there is nothing to summarise. Pure. */
export function planCompaction(
  entries: readonly Entry[],
  { policy, window, keep }: PlanOptions,
): CompactionPlan | undefined {
  const { start, entries: shown, pruned } = select(entries, 'last-boundary');
  const cut = cutPoint(shown, {
    keep,
    usable: window === undefined ? undefined : usableOf(policy, window),
    tokens: (entry) => (pruned.has(entry.seq) ? prunedTokens : entryTokens(entry, policy.countTokens)),
  });
  if (cut === undefined) return undefined;
  const begins = entries[0]?.seq ?? cut.at - 1;
  const previous = previousIn(start, begins);
  // What was left out of the view is left out of the summary, too.
  const told = shown.filter((entry) => entry.mark !== 'boundary' && (entry.seq < cut.at || isPrune(entry)));
  const first = start?.mark === 'boundary' ? Math.min(start.ref ?? start.seq, start.seq) : begins;
  return {
    cut: cut.at,
    warning: cut.warning,
    gone: shown.filter(({ seq }) => seq < cut.at),
    messages: view(told).messages,
    manifest: view(entries, { countTokens: policy.countTokens }).manifest(),
    previous,
    range: [previous.from ?? begins, cut.at - 1],
    span: { since: Math.max(first, begins) - 1, cut: cut.at - 1 },
  };
}

function previousIn(start: Entry | undefined, begins: Seq): Previous {
  const state = isObject(start?.payload) && isObject(start.payload.state) ? start.payload.state : {};
  const isCompaction = start?.kind === 'compaction';
  // Of another boundary the state is shown too, and goes on in the summary.
  const told = isCompaction
    ? state.summary
    : renderState(start)
        ?.content.map((part) => String(part.text))
        .join('\n');
  const text = typeof told === 'string' && told !== '' ? withoutFileTags(told) : undefined;
  const from = isCompaction && Array.isArray(state.range) ? state.range[0] : undefined;
  return {
    text,
    seq: text === undefined ? undefined : start?.seq,
    state: isCompaction ? state : {},
    turns: isCompaction && typeof state.turns_summarized === 'number' ? state.turns_summarized : 0,
    // A tape is data: what is no position before this view is none.
    from:
      Number.isSafeInteger(from) && Number(from) >= 1 && Number(from) <= begins ? Number(from) : undefined,
  };
}

/** What a view takes, and would take with a summary in the place of what lies before a cut, as an estimate. Pure. */
export function sizesOf(
  entries: readonly Entry[],
  { summary, cut, count }: { summary: string; cut: Seq; count: ResolvedPolicy['countTokens'] },
): { readonly before: number; readonly after: number } {
  const last = entries.at(-1);
  if (last === undefined) return { before: 0, after: 0 };
  const boundary: Entry = {
    ...last,
    seq: last.seq + 1,
    kind: 'compaction',
    mark: 'boundary',
    name: 'compaction',
    ref: cut,
    payload: { state: { summary } },
    inherited: false,
  };
  const size = (shown: readonly Entry[]) => estimateTokens(view(shown).messages, count);
  return { before: size(entries), after: size([...entries, boundary]) };
}

/** How many messages of users there are among entries. */
export function turnsIn(entries: readonly Entry[]): number {
  return entries.filter(
    ({ kind, payload, meta }) =>
      kind === 'message' && meta.context !== false && isObject(payload) && payload.role === 'user',
  ).length;
}
