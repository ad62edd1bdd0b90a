/**
 * Views: the messages of a tape that a model receives. `source.ts` reads the entries that a policy needs. All
 * else is pure: `select.ts` selects among them, `render.ts` renders them as messages, `fit.ts` makes these
 * valid for a provider, and `manifest.ts` records what a view was made of. Imports `tape` and what lies below
 * it.
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

/** How to render a view. */
export interface ViewOptions {
  readonly policy?: ViewPolicy;
  readonly target?: Target;
  /** Counts the tokens of a text. Default: characters divided by four. */
  readonly countTokens?: CountTokens | undefined;
}

/**
 * The messages of a session for one target. The same entries and options give the same bytes.
 *
 * @example
 * ```ts
 * import { openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * for (const { seq, in: shown, why } of view(store.views.entries('main')).explain())
 *   if (shown) console.log(seq, why); // 2 in view
 * ```
 */
export interface View {
  readonly messages: readonly StoredMessage[];
  /** SHA-256 of the messages' compact JSON, lower-case hex. Computed when it is first read. */
  readonly digest: string;
  /**
   * How many tokens of a model's window it uses: the usage that the provider reported for the last step,
   * which includes the system prompt and tools, plus an estimate of later entries. Without a reported step,
   * an estimate of the messages.
   */
  readonly tokens: number;
  /** Whether no step reported usage, so that `tokens` excludes system prompt and tools. */
  readonly isEstimate: boolean;
  /** First and last position that the view covers; 0 for an empty view. */
  readonly from: Seq;
  readonly to: Seq;
  /** Every entry received, and why it is in or out. */
  explain(): readonly { readonly seq: Seq; readonly in: boolean; readonly why: string }[];
  /** A compact record of what the view was made of. */
  manifest(): Manifest;
}

/**
 * Renders the entries of a session for a target. Pure: no store, no clock.
 * @param entries all entries of a session, or those that `store.views.entries` reads for the same policy
 * @throws TAPE_BAD_POLICY; TAPE_NO_ANCHOR when the policy names an anchor that is not visible
 *
 * @example
 * ```ts
 * import { openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * const { messages } = view(store.views.entries('main'));
 * console.log(messages[0]?.role, messages[0]?.content[0]?.text); // user Plan the release.
 * ```
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
  let made: string | undefined;
  const digest = () => {
    made ??= sha256(JSON.stringify(messages));
    return made;
  };
  const used = usedSinceStep(shown, { policy, count: countTokens });
  const tokens = used ?? estimateTokens(messages, countTokens);
  return {
    messages,
    get digest() {
      return digest();
    },
    tokens,
    isEstimate: used === undefined,
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
    manifest: () =>
      manifestOf(all, selection, { policy, provider: target.provider, tokens, digest: digest() }),
  };
}

/** The shown entries and the one whose state begins the view, in order of position. */
function inOrder({ start, entries }: Selection): readonly Entry[] {
  return (start === undefined ? [...entries] : [start, ...entries]).sort((a, b) => a.seq - b.seq);
}
