/**
 * Views: the messages that a model gets to see of a tape. `source.ts` reads the entries that a policy needs; all else is
 * pure: `select.ts` chooses among them, `render.ts` makes messages of them, `fit.ts` makes these valid for a provider, and
 * `manifest.ts` records what a view was made of. Imports `tape` and what lies below it.
 */
import type { Entry, Seq } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import type { Target } from './dialect.ts';
import { fitTo } from './fit.ts';
import { type Manifest, manifestOf } from './manifest.ts';
import type { ViewPolicy } from './policy.ts';
import { renderEntry, renderState, type StoredMessage } from './render.ts';
import { type Selection, select } from './select.ts';
import { type CountTokens, estimateTokens, usedSinceStep } from './tokens.ts';

export interface ViewOptions {
  readonly policy?: ViewPolicy;
  readonly target?: Target;
  /** Counts the tokens of a text; without it, characters divided by four (J18). */
  readonly countTokens?: CountTokens | undefined;
}

/** What a reader should see of a session. The same entries and options give the same bytes. */
export interface View {
  readonly messages: readonly StoredMessage[];
  /** SHA-256 of the messages' compact JSON, lower-case hex. */
  readonly digest: string;
  /**
   * How much of a model's window it takes: what the provider said of the last step, all that it was told beside the messages included,
   * and an estimate of what came after (K24); where no step has told, an estimate of the messages.
   */
  readonly tokens: number;
  /** Whether no step has told, so that what the model is told beside the messages is not counted. */
  readonly isEstimate: boolean;
  /** The first and last position that the view covers; 0 when there is none. */
  readonly from: Seq;
  readonly to: Seq;
  /** Every entry given, and why it is in or out. */
  explain(): readonly { readonly seq: Seq; readonly in: boolean; readonly why: string }[];
  /** What it was made of, in short. */
  manifest(): Manifest;
}

/**
 * Renders the entries of a session for a reader (law 7). Pure: no store, no clock.
 * @param entries all of a session's, or those that `viewEntries` reads for the same policy
 * @throws TAPE_BAD_POLICY; TAPE_NO_ANCHOR when the policy names an anchor that is not to be seen
 */
export function view(
  entries: Iterable<Entry>,
  { policy = 'last-boundary', target = {}, countTokens }: ViewOptions = {},
): View {
  const all = [...entries];
  const selection = select(all, policy);
  const { start, entries: selected, pruned, reasons } = selection;
  const state = renderState(start);
  const rendered = selected.flatMap((entry) => renderEntry(entry, pruned.get(entry.seq)) ?? []);
  const messages = fitTo(
    state === undefined ? rendered : [{ type: 'message', message: state, provider: undefined }, ...rendered],
    target,
  );
  const shown = inOrder(selection);
  const digest = sha256(JSON.stringify(messages));
  const told = usedSinceStep(shown, { policy, count: countTokens });
  const tokens = told ?? estimateTokens(messages, countTokens);
  return {
    messages,
    digest,
    tokens,
    isEstimate: told === undefined,
    from: shown[0]?.seq ?? 0,
    to: shown.at(-1)?.seq ?? 0,
    explain: () =>
      all.map((entry) => {
        const reason = reasons.get(entry.seq) ?? { in: false, why: 'not visible' };
        const skipped = reason.in && entry !== start && renderEntry(entry) === undefined;
        return {
          seq: entry.seq,
          ...(skipped ? { in: false, why: `views skip ${entry.kind} entries` } : reason),
        };
      }),
    manifest: () => manifestOf(all, selection, { policy, provider: target.provider, tokens, digest }),
  };
}

/** What a view shows and what begins it, in order of position. */
function inOrder({ start, entries }: Selection): readonly Entry[] {
  return (start === undefined ? [...entries] : [start, ...entries]).sort((a, b) => a.seq - b.seq);
}
