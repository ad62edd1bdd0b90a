import type { Entry, Seq } from '@tapedeck/tape';
import { clientCalls, isObject } from '@tapedeck/tape/internal';
import { isAnswer, pairClientCalls, partsOf } from './client-calls.ts';
import type { Keep } from './policy.ts';

/** Where the part that stays begins. */
export interface CutPoint {
  readonly at: Seq;
  /** Why less, or more, stays than `keep` requests. */
  readonly warning?: string;
}

interface CutOptions {
  readonly keep: Keep;
  /** Tokens of the usable window; undefined if the window is unknown. */
  readonly usable: number | undefined;
  /** The tokens that an entry adds to a view. */
  readonly tokens: (entry: Entry) => number;
}

/**
 * The positions at which a view may be cut: each message but the first, where no call before the position has
 * its result after it, or still waits for its provider. Pure.
 * @param entries the entries that the view shows, in order
 */
export function validCuts(entries: readonly Entry[]): readonly Seq[] {
  const shown = entries.filter(isShown);
  const messages = shown.filter(({ kind }) => kind === 'message');
  const spans = [...clientSpans(shown), ...providerSpans(messages)];
  return messages
    .slice(1)
    .flatMap(({ seq }) => (spans.some(({ from, to }) => from < seq && seq <= to) ? [] : seq));
}

/** From a call to its result: no cut separates the two. */
interface Span {
  readonly from: Seq;
  readonly to: Seq;
}

function clientSpans(shown: readonly Entry[]): readonly Span[] {
  return Array.from(pairClientCalls(shown).answered, ([result, { message }]) => ({
    from: message.seq,
    to: result.seq,
  }));
}

/**
 * The spans of calls that a provider executes, for any provider. Its result may be in a later message, but not
 * after a message of the user. While the last message waits for client-side tools, the result can still come.
 */
function providerSpans(messages: readonly Entry[]): readonly Span[] {
  const open = new Map<string, Seq>();
  const spans: Span[] = [];
  for (const message of messages) {
    if (!isAnswer(message)) {
      open.clear();
      continue;
    }
    for (const part of partsOf(message)) {
      const id = String(part.toolCallId);
      // A call that repeats an id may be of another provider: the span begins with the first.
      if (part.type === 'tool-call' && part.providerExecuted === true && !open.has(id))
        open.set(id, message.seq);
      const from = part.type === 'tool-result' ? open.get(id) : undefined;
      if (from === undefined) continue;
      spans.push({ from, to: message.seq });
      open.delete(id);
    }
  }
  const last = messages.at(-1);
  if (last !== undefined && clientCalls(last.payload).length > 0)
    for (const from of open.values()) spans.push({ from, to: last.seq });
  return spans;
}

/**
 * Where to cut a view so that a tail of the requested size stays. Pure.
 * @returns undefined if the view has nothing to summarise or no valid cut
 */
export function cutPoint(
  entries: readonly Entry[],
  { keep, usable, tokens: tokensOf }: CutOptions,
): CutPoint | undefined {
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
  // A tail of at most half of the usable window leaves room for the next turns.
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
      warning: `${keep.turns === 1 ? '1 turn exceeds' : `${keep.turns} turns exceed`} ${Math.floor(share ?? 0)} tokens: fewer stay`,
    };
  const [last] = wanted.slice(-1);
  // The last turn stays whole if it leaves half of the window free.
  if (last !== undefined && keep.over !== 'split' && tail(last) <= most)
    return {
      at: last,
      warning: `the last turn exceeds ${Math.floor(share ?? 0)} tokens: it alone stays`,
    };
  // With an unknown window, only the last step of the turn stays.
  const within = found(byTokens(share ?? 0));
  if (within === undefined || last === undefined) return within;
  return {
    ...within,
    warning: `the last turn exceeds ${Math.floor(share ?? 0)} tokens: a part of it stays`,
  };
}

function found(at: Seq | undefined): CutPoint | undefined {
  return at === undefined ? undefined : { at };
}

/** The first cut that leaves at most `wanted` tokens plus one entry after it; if none does, the last cut. */
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

/** The messages that begin a turn: a user message after an assistant message or at the start, not a merge. */
function turnStarts(entries: readonly Entry[]): readonly Seq[] {
  const messages = entries.filter((entry) => entry.kind === 'message' && isShown(entry));
  return messages
    .filter((entry, i) => {
      const before = messages[i - 1];
      return !isAnswer(entry) && entry.meta.source !== 'merge' && (before === undefined || isAnswer(before));
    })
    .map(({ seq }) => seq);
}

function isShown({ meta, payload }: Entry): boolean {
  return meta.context !== false && isObject(payload);
}
