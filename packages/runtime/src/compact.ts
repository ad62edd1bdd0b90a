import {
  compaction,
  type Entry,
  entryTokens,
  estimateTokens,
  isObject,
  isPrune,
  type JsonObject,
  renderState,
  type Seq,
  select,
  view,
} from '@tapedeck/tape';
import { type Keep, type ResolvedPolicy, resolvePolicy, usableOf } from './compaction-policy.ts';
import type { DeckConfig } from './config.ts';
import { cutPoint } from './cut-point.ts';
import { fileSets, fileSetsIn, fileTags, withoutFileTags } from './file-sets.ts';
import type { LoopContext } from './loop.ts';
import { type LanguageModel, modelMeta } from './model.ts';
import { type ModelWindow, windowOf } from './model-window.ts';
import { NoSummary, summarize } from './summarize.ts';
import { missingSections } from './summary-prompt.ts';
import { costMeta, totalOf, type Usage, usageJson } from './usage.ts';

/** Why a session is summarised. `overflow`: its model refused it; `model-switch`: the next one would. */
export type CompactionTrigger = 'manual' | 'threshold' | 'overflow' | 'model-switch';

/** What a deck says of summaries, for the model that a session is run with. */
export interface CompactionTerms {
  readonly policy: ResolvedPolicy;
  /** Undefined: nobody tells how much the model takes. */
  readonly window: ModelWindow | undefined;
  /** Of the model that summarises. */
  readonly summarizerWindow: ModelWindow | undefined;
}

/** What summarising a session needs of whoever writes it. */
export type CompactContext = Pick<
  LoopContext,
  | 'session'
  | 'model'
  | 'summarizer'
  | 'compaction'
  | 'signal'
  | 'calling'
  | 'append'
  | 'tell'
  | 'cost'
  | 'now'
  | 'limits'
> & { readonly run?: string };

/** What is asked for. */
interface CompactionOrder {
  readonly trigger: CompactionTrigger;
  readonly focus?: string | undefined;
  /** In place of the policy's. */
  readonly keep?: Keep;
  /** What the view may take afterwards, in tokens. */
  readonly fit?: number;
}

/** A summary that stands for a part of a session now. */
export interface Compacted {
  /** Position of the entry. */
  readonly seq: Seq;
  /** The first and last position that it stands for. */
  readonly range: readonly [Seq, Seq];
  /** What the view took before and takes now, as an estimate. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** What writing it took. */
  readonly usage: Usage;
}

/** About what is left of an output that was left out. */
const prunedTokens = 40;

/** What a deck says of summaries. */
export function compactionTerms(
  { compaction: given, windows }: Pick<DeckConfig, 'compaction' | 'windows'>,
  model: LanguageModel,
  summarizer: LanguageModel = model,
): CompactionTerms {
  return {
    policy: resolvePolicy(given),
    window: windowOf(windows, modelMeta(model)),
    summarizerWindow: windowOf(windows, modelMeta(summarizer)),
  };
}

/**
 * Puts a summary in the place of the older part of a view, if that makes it smaller. Nothing is removed: the summary is an entry
 * that cites its range (N48, G41). Nothing where there is nothing to summarise.
 * @param entries what the view is made of
 * @throws NoSummary, and nothing is written; the signal's reason when it is aborted
 */
export async function compact(
  context: CompactContext,
  entries: readonly Entry[],
  { trigger, focus, keep, fit = Number.POSITIVE_INFINITY }: CompactionOrder,
): Promise<Compacted | undefined> {
  const { policy, window, summarizerWindow } = context.compaction;
  const count = policy.countTokens;
  const { start, entries: shown, pruned } = select(entries, 'last-boundary');
  const cut = cutPoint(shown, {
    keep: keep ?? policy.keep,
    usable: window === undefined ? undefined : usableOf(policy, window),
    tokens: (entry) => (pruned.has(entry.seq) ? prunedTokens : entryTokens(entry, count)),
  });
  if (cut === undefined) return undefined;
  const gone = shown.filter(({ seq }) => seq < cut.at);
  const before = previousIn(start);
  if (cut.warning !== undefined)
    context.tell({ type: 'warning', message: `summarising '${context.session}': ${cut.warning}` });
  const { model = context.model } = { model: context.summarizer };
  const startedAt = context.now();
  const summary = await summarize(
    // What was left out of the view is left out here, too.
    view(shown.filter((entry) => entry.mark !== 'boundary' && (entry.seq < cut.at || isPrune(entry))))
      .messages,
    { previous: before.text, focus },
    {
      model,
      window: summarizerWindow,
      policy,
      retries: context.limits.retries,
      retryDelayMs: context.limits.retryDelayMs,
      signal: context.signal,
      calling: context.calling,
      onRetry: (attempt, message, delayMs) => context.tell({ type: 'retrying', attempt, message, delayMs }),
    },
  );
  const files = fileSets(gone, fileSetsIn(before.state));
  const tags = fileTags(files);
  const text = tags === '' ? summary.text : `${summary.text}\n\n${tags}`;
  const missing = missingSections(summary.text);
  const range = [before.from ?? entries[0]?.seq ?? cut.at - 1, cut.at - 1] as const;
  const { provider, model: name } = modelMeta(model);
  const said = totalOf({ ...summary.usage, input: 0, cacheRead: 0, cacheWrite: 0 });
  const facts = {
    range,
    trigger,
    compaction_type: summary.reduction === 'none' ? 'whole' : summary.reduction,
    summarized_through: range[1],
    first_kept: cut.at,
    turns_summarized: gone.filter(isTurn).length,
    ...(provider !== undefined && { provider }),
    model: name,
    summary_tokens: estimateTokens([{ role: 'user', content: [{ type: 'text', text }] }], count),
    summarization_input_tokens: totalOf(summary.usage) - said,
    summarization_output_tokens: said,
    duration_ms: context.now() - startedAt,
    ...(focus !== undefined && { focus }),
    ...(missing.length > 0 && { missing_sections: [...missing] }),
    read_files: [...files.read],
    modified_files: [...files.modified],
  };
  const sizes = sizesOf(entries, { summary: text, cut: cut.at, count });
  if (sizes.after > fit)
    throw new NoSummary(
      `what is left with it is too large, too (${sizes.after} tokens, not ${Math.floor(fit)})`,
      {
        response: summary.response,
      },
    );
  if (sizes.after >= sizes.before)
    throw new NoSummary(
      `the summary is not smaller than what it would stand for (${sizes.after} tokens, not ${sizes.before})`,
      { response: summary.response },
    );
  const state = { summary: text, ...facts, tokens_before: sizes.before, tokens_after: sizes.after };
  const meta = {
    ...(context.run !== undefined && { run: context.run }),
    ...modelMeta(model),
    ...(summary.response !== undefined && { response: summary.response }),
    usage: usageJson(summary.usage),
    ...costMeta(context.cost, summary.usage, name),
  };
  const { to } = await context.append([{ ...compaction(state, { keepFrom: cut.at }), meta }]);
  context.tell({
    type: 'compacted',
    seq: to,
    range,
    trigger,
    tokensBefore: sizes.before,
    tokensAfter: sizes.after,
  });
  return { seq: to, range, tokensBefore: sizes.before, tokensAfter: sizes.after, usage: summary.usage };
}

/** What a view begins with: the summary that the next one brings up to date, and where what it stands for begins. */
function previousIn(start: Entry | undefined): {
  readonly text: string | undefined;
  readonly state: JsonObject;
  readonly from: Seq | undefined;
} {
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
  return { text, state: isCompaction ? state : {}, from: typeof from === 'number' ? from : undefined };
}

/** What a view takes, and would take with a summary in the place of what lies before a cut. */
function sizesOf(
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

function isTurn({ kind, payload, meta }: Entry): boolean {
  return kind === 'message' && meta.context !== false && isObject(payload) && payload.role === 'user';
}
