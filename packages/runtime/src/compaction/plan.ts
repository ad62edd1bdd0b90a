import { type Entry, type JsonObject, type Seq, type StoredMessage, view } from '@tapedeck/tape';
import {
  entryTokens,
  estimateTokens,
  isObject,
  isPrune,
  type Manifest,
  renderState,
  select,
} from '@tapedeck/tape/internal';
import type { ModelWindow } from '../model/window.ts';
import { cutPoint } from './cut-point.ts';
import { withoutFileTags } from './file-sets.ts';
import { type Keep, type ResolvedPolicy, usableOf } from './policy.ts';

/** The range that a summary replaces, and the input of the summarizer. */
export interface CompactionPlan {
  /** Where the tail that stays begins. */
  readonly cut: Seq;
  /** Why less, or more, of the tail stays than `keep` requests. */
  readonly warning: string | undefined;
  /** The shown entries before the cut, in order. */
  readonly summarized: readonly Entry[];
  /** The same entries as a model sees them. */
  readonly messages: readonly StoredMessage[];
  /** The manifest of the whole view before the compaction. */
  readonly manifest: Manifest;
  readonly previous: Previous;
  /** The first and last position that the summary replaces, including those of the summary before it. */
  readonly range: readonly [Seq, Seq];
  /**
   * The part of `range` that the summarizer reads, as the arguments of a fork: positions after
   * `inherit.since`, up to `cut`.
   */
  readonly span: { readonly inherit: { readonly since: Seq }; readonly cut: Seq };
}

/** The state at the start of a view: the summary that the next one updates. */
interface Previous {
  /** Undefined if the view does not begin with a state. */
  readonly text: string | undefined;
  readonly seq: Seq | undefined;
  readonly state: JsonObject;
  /** Where the range of the earlier summary begins. */
  readonly from: Seq | undefined;
  /** The number of user messages that the summary covers; 0 if it does not record one. */
  readonly turns: number;
}

interface PlanOptions {
  readonly policy: ResolvedPolicy;
  readonly window: ModelWindow | undefined;
  readonly keep: Keep;
}

/** Approximate tokens of the text that replaces a pruned output. */
const prunedTokens = 40;

/**
 * Where to cut a view, and what the summary covers. Pure.
 * @returns undefined if the view has nothing to summarise
 */
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
  // Pruned outputs stay out of the summary as well, so prune entries after the cut apply to it.
  const summarised = shown.filter(
    (entry) => entry.mark !== 'boundary' && (entry.seq < cut.at || isPrune(entry)),
  );
  const first = start?.mark === 'boundary' ? Math.min(start.ref ?? start.seq, start.seq) : begins;
  return {
    cut: cut.at,
    warning: cut.warning,
    summarized: shown.filter(({ seq }) => seq < cut.at),
    messages: view(summarised).messages,
    manifest: view(entries, { countTokens: policy.countTokens }).manifest(),
    previous,
    range: [previous.from ?? begins, cut.at - 1],
    span: { inherit: { since: Math.max(first, begins) - 1 }, cut: cut.at - 1 },
  };
}

function previousIn(start: Entry | undefined, begins: Seq): Previous {
  const state = isObject(start?.payload) && isObject(start.payload.state) ? start.payload.state : {};
  const isCompaction = start?.kind === 'compaction';
  // The view shows the state of any other boundary too; the summary carries it on.
  const shown = isCompaction
    ? state.summary
    : renderState(start)
        ?.content.map((part) => String(part.text))
        .join('\n');
  const text = typeof shown === 'string' && shown !== '' ? withoutFileTags(shown) : undefined;
  const from = isCompaction && Array.isArray(state.range) ? state.range[0] : undefined;
  return {
    text,
    seq: text === undefined ? undefined : start?.seq,
    state: isCompaction ? state : {},
    turns: isCompaction && typeof state.turns_summarized === 'number' ? state.turns_summarized : 0,
    // The value comes from the tape: ignore it unless it is a position before this view.
    from:
      Number.isSafeInteger(from) && Number(from) >= 1 && Number(from) <= begins ? Number(from) : undefined,
  };
}

/**
 * The estimated tokens of a view, and of the view with a summary in place of everything before a cut. Pure.
 */
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

/** The number of user messages among entries. */
export function turnsIn(entries: readonly Entry[]): number {
  return entries.filter(
    ({ kind, payload, meta }) =>
      kind === 'message' && meta.context !== false && isObject(payload) && payload.role === 'user',
  ).length;
}
