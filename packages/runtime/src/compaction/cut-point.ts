import { type Entry, isObject, type Part, type Seq } from '@tapedeck/tape';
import type { Keep } from './policy.ts';

/** Where what stays begins. */
export interface Cut {
  readonly at: Seq;
  /** The tail that was to be kept is larger than it should be: why less, or more, of it stays. */
  readonly warning?: string;
}

interface CutOptions {
  readonly keep: Keep;
  /** How many tokens can be used; unknown where nobody tells the model's window. */
  readonly usable: number | undefined;
  /** How many tokens an entry adds to a view. */
  readonly tokens: (entry: Entry) => number;
}

/**
 * Where a view may be cut: before each message but the first, where no call before it has its result after it or is still
 * open (J23). Pure.
 * @param entries what the view shows, in order
 */
export function validCuts(entries: readonly Entry[]): readonly Seq[] {
  const shown = entries.filter((entry) => entry.kind === 'message' && isShown(entry));
  const spans = callSpans(entries);
  return shown
    .slice(1)
    .flatMap(({ seq }) => (spans.some(({ from, to }) => from < seq && seq <= to) ? [] : seq));
}

/** From each call to its result; a call that may yet be answered reaches to the end. */
function callSpans(entries: readonly Entry[]): readonly { readonly from: Seq; readonly to: Seq }[] {
  const open: { readonly id: string; readonly from: Seq }[] = [];
  const spans: { readonly from: Seq; readonly to: Seq }[] = [];
  const close = (id: unknown, to: Seq) => {
    // A result belongs to the newest call of its id that has none.
    const at = open.findLastIndex((call) => call.id === id);
    const [call] = at === -1 ? [] : open.splice(at, 1);
    if (call !== undefined && call.from < to) spans.push({ from: call.from, to });
  };
  const last = entries.findLast((entry) => entry.kind === 'message' && isShown(entry));
  for (const entry of entries) {
    if (!isShown(entry)) continue;
    if (entry.kind === 'tool-result' && isObject(entry.payload)) close(entry.payload.toolCallId, entry.seq);
    if (entry.kind !== 'message') continue;
    for (const part of partsOf(entry)) {
      if (part.type === 'tool-result') close(part.toolCallId, entry.seq);
      if (part.type === 'tool-call' && isAssistant(entry))
        open.push({ id: String(part.toolCallId), from: entry.seq });
    }
  }
  return [
    ...spans,
    ...open
      .filter(({ from }) => from === last?.seq)
      .map(({ from }) => ({ from, to: Number.POSITIVE_INFINITY })),
  ];
}

/**
 * Where to cut a view so that a tail of the size that is wanted stays (G42, J22, K18). Nothing where there is nothing to
 * summarise, or no place to cut. Pure.
 */
export function cutPoint(
  entries: readonly Entry[],
  { keep, usable, tokens: tokensOf }: CutOptions,
): Cut | undefined {
  const cuts = validCuts(entries);
  const sizes = new Map(entries.map((entry) => [entry.seq, tokensOf(entry)]));
  const tokens = ({ seq }: Entry) => sizes.get(seq) ?? 0;
  const tails = new Map<Seq, number>();
  let all = 0;
  for (const entry of entries.toSorted((a, b) => b.seq - a.seq)) {
    all += tokens(entry);
    tails.set(entry.seq, all);
  }
  const tail = (at: Seq) => tails.get(at) ?? all;
  // Whatever is asked for, summarising must make room.
  const most = (usable ?? all) / 2;
  const byTokens = (wanted: number) => cutByTokens(entries, { cuts, wanted: Math.min(wanted, most), tokens });
  if ('tokens' in keep)
    return found(all <= keep.tokens && usable === undefined ? undefined : byTokens(keep.tokens));
  if ('ratio' in keep) return found(byTokens(keep.ratio * (usable ?? all)));
  const share = usable === undefined ? undefined : (keep.share ?? 0.25) * usable;
  const possible = new Set(cuts);
  const turns = turnStarts(entries).filter((at) => possible.has(at));
  const wanted = turns.slice(-keep.turns);
  const fits = wanted.find((at) => share === undefined || tail(at) <= share);
  if (fits !== undefined && fits === wanted[0]) return { at: fits };
  if (fits !== undefined)
    return {
      at: fits,
      warning: `${keep.turns} turns are more than ${Math.floor(share ?? 0)} tokens: fewer stay`,
    };
  const [last] = wanted.slice(-1);
  // The last turn stays whole, unless that would leave no room at all.
  if (last !== undefined && keep.over !== 'split' && tail(last) <= most)
    return {
      at: last,
      warning: `the last turn is more than ${Math.floor(share ?? 0)} tokens: it alone stays`,
    };
  // Where nobody tells how much there is room for, the last step alone stays of a turn.
  const within = found(byTokens(share ?? 0));
  if (within === undefined || last === undefined) return within;
  return {
    ...within,
    warning: `the last turn is more than ${Math.floor(share ?? 0)} tokens: a part of it stays`,
  };
}

function found(at: Seq | undefined): Cut | undefined {
  return at === undefined ? undefined : { at };
}

/** The nearest cut at or after the place from which on there are as many tokens; where there is none, the last one (J22). */
function cutByTokens(
  entries: readonly Entry[],
  { cuts, wanted, tokens }: { cuts: readonly Seq[]; wanted: number; tokens: (entry: Entry) => number },
): Seq | undefined {
  let sum = 0;
  const from = entries.findLast((entry) => {
    sum += tokens(entry);
    return sum >= wanted;
  })?.seq;
  return cuts.find((at) => at >= (from ?? 0)) ?? cuts.at(-1);
}

/** The messages with which somebody began a turn: not those of a merge, nor a second one in a row. */
function turnStarts(entries: readonly Entry[]): readonly Seq[] {
  const messages = entries.filter((entry) => entry.kind === 'message' && isShown(entry));
  return messages
    .filter((entry, i) => {
      const before = messages[i - 1];
      return (
        !isAssistant(entry) && entry.meta.source !== 'merge' && (before === undefined || isAssistant(before))
      );
    })
    .map(({ seq }) => seq);
}

function isShown({ meta, payload }: Entry): boolean {
  return meta.context !== false && isObject(payload);
}

function isAssistant({ payload }: Entry): boolean {
  return isObject(payload) && payload.role === 'assistant';
}

function partsOf({ payload }: Entry): readonly Part[] {
  return isObject(payload) && Array.isArray(payload.content) ? (payload.content as unknown as Part[]) : [];
}
