import type { Target } from './dialect.ts';
import type { Entry, Seq } from './entry.ts';
import { fitTo } from './fit.ts';
import { sha256 } from './hash.ts';
import { renderEntry, renderState, type StoredMessage } from './render.ts';
import { select, type ViewPolicy } from './select.ts';

export interface ViewOptions {
  readonly policy?: ViewPolicy;
  readonly target?: Target;
}

/** What a reader should see of a session. The same entries and options give the same bytes. */
export interface View {
  readonly messages: readonly StoredMessage[];
  /** SHA-256 of the messages' compact JSON, lower-case hex. */
  readonly digest: string;
  /** An estimate: characters divided by four (J18). */
  readonly tokens: number;
  /** The first and last position that the view covers; 0 when there is none. */
  readonly from: Seq;
  readonly to: Seq;
  /** Every entry given, and why it is in or out. */
  explain(): readonly { readonly seq: Seq; readonly in: boolean; readonly why: string }[];
}

/** Renders the entries of a session for a reader (law 7). Pure: no store, no clock. */
export function view(
  entries: Iterable<Entry>,
  { policy = 'last-boundary', target = {} }: ViewOptions = {},
): View {
  const all = [...entries];
  const { start, entries: selected, pruned, reasons } = select(all, policy);
  const state = renderState(start);
  const rendered = selected.flatMap((entry) => renderEntry(entry, pruned.get(entry.seq)) ?? []);
  const messages = fitTo(
    state === undefined ? rendered : [{ type: 'message', message: state, provider: undefined }, ...rendered],
    target,
  );
  const seqs = [...(start === undefined ? [] : [start.seq]), ...selected.map((e) => e.seq)];
  return {
    messages,
    digest: sha256(JSON.stringify(messages)),
    tokens: estimateTokens(messages),
    from: seqs.length === 0 ? 0 : Math.min(...seqs.slice(0, 1), ...selected.slice(0, 1).map((e) => e.seq)),
    to: selected.reduce((most, entry) => Math.max(most, entry.seq), start?.seq ?? 0),
    explain: () =>
      all.map((entry) => {
        const reason = reasons.get(entry.seq) ?? { in: false, why: 'not visible' };
        const skipped = reason.in && entry !== start && renderEntry(entry) === undefined;
        return {
          seq: entry.seq,
          ...(skipped ? { in: false, why: `views skip ${entry.kind} entries` } : reason),
        };
      }),
  };
}

/** Characters of texts and of the JSON of everything else, divided by four. */
export function estimateTokens(messages: readonly StoredMessage[]): number {
  let chars = 0;
  for (const { content } of messages)
    for (const part of content)
      chars += typeof part.text === 'string' ? part.text.length : JSON.stringify(part).length;
  return Math.ceil(chars / 4);
}
