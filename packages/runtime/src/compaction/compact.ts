import { compaction, type Entry, type JsonObject, type Seq } from '@tapedeck/tape';
import { estimateTokens, totalOf } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import { type LanguageModel, modelMeta } from '../model/model.ts';
import { warnOnce } from '../model/sdk-warnings.ts';
import { windowOf } from '../model/window.ts';
import type { CompactContext, CompactionOrder, CompactionTerms } from './context.ts';
import { fileSets, fileSetsIn, fileTags } from './file-sets.ts';
import { NoSummary } from './no-summary.ts';
import { type CompactionPlan, planCompaction, sizesOf, turnsIn } from './plan.ts';
import { type CompactionConfig, resolvePolicy } from './policy.ts';
import { recordSummarizer, responseOf, type SummaryWork, usageOf } from './record.ts';
import { summarize } from './summarize.ts';
import type { SummaryCall } from './summary-call.ts';
import { missingSections } from './summary-prompt.ts';

/** A summary that now replaces a part of the view. */
export interface Compacted {
  /** Position of the compaction entry. */
  readonly seq: Seq;
  /** The first and last position that the summary replaces. */
  readonly range: readonly [Seq, Seq];
  /** Estimated tokens of the view before and after. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Name of the session in which the summary was written. */
  readonly summarizer: string;
  /** The required sections that the summary lacks. */
  readonly missingSections?: readonly string[];
}

/** Resolves the policy and the windows of a configuration for the models of a session. */
export function compactionTerms(
  { compaction: given, windows }: CompactionConfig,
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
 * Replaces the older part of a view with a summary, if that makes the view smaller. Removes nothing: the
 * summary is an entry that cites its range and the session in which it was written. That session is recorded
 * after the first model call, whether or not the compaction succeeds.
 * @param entries the entries of the view
 * @returns undefined if the view has nothing to summarise
 * @throws NoSummary when no entry was written; the reason of the signal when it aborts
 */
export async function compact(
  context: CompactContext,
  entries: readonly Entry[],
  order: CompactionOrder,
): Promise<Compacted | undefined> {
  const { policy, window } = context.compaction;
  const plan = planCompaction(entries, { policy, window, keep: order.keep ?? policy.keep });
  if (plan === undefined) return undefined;
  if (plan.warning !== undefined)
    context.emitEvent({ type: 'warning', message: `compacting '${context.session}': ${plan.warning}` });
  const model = context.summarizer ?? context.model;
  const calls: SummaryCall[] = [];
  const record = async (end: SummaryWork['end']) => {
    context.spend(usageOf(calls));
    return await recordSummarizer(context, { plan, order, model, calls, end });
  };
  let written: Written;
  try {
    written = await write(context, entries, { plan, order, model, calls });
  } catch (error) {
    const summarizer = await record({ failure: error });
    if (!(error instanceof NoSummary)) throw error;
    throw error.with({ summarizer, response: responseOf(calls) });
  }
  const { state, sizes } = written;
  const summarizer = await record({ reduction: written.reduction });
  if (summarizer === undefined) throw new TypeError('no model call produced this summary');
  const response = responseOf(calls);
  const meta = {
    ...(context.run !== undefined && { run: context.run }),
    ...modelMeta(model),
    ...(response !== undefined && { response }),
  };
  const draft = compaction({ ...state, summarizer: { ...summarizer } }, { keepFrom: plan.cut });
  const { to: seq } = await context.append([{ ...draft, meta }]);
  const { range } = plan;
  const tokens = { tokensBefore: sizes.before, tokensAfter: sizes.after };
  context.emitEvent({ type: 'compacted', seq, range, trigger: order.trigger, ...tokens });
  const { missing_sections: missing } = state;
  const missingSections = Array.isArray(missing) ? missing.map(String) : [];
  if (missingSections.length > 0)
    context.emitEvent({
      type: 'warning',
      message: `the summary of '${context.session}' lacks ${missingSections.join(', ')}`,
    });
  return {
    seq,
    range,
    ...tokens,
    summarizer: summarizer.session,
    ...(missingSections.length > 0 && { missingSections }),
  };
}

/** A summary that may replace its range. */
interface Written {
  readonly state: JsonObject & { readonly summary: string; readonly range: readonly [Seq, Seq] };
  readonly sizes: { readonly before: number; readonly after: number };
  readonly reduction: string;
}

interface Writing {
  readonly plan: CompactionPlan;
  readonly order: CompactionOrder;
  readonly model: LanguageModel;
  /** Collects the model calls as they end. */
  readonly calls: SummaryCall[];
}

/**
 * Writes a summary and the state that records how it was made.
 * @throws NoSummary also when the summary makes the view no smaller
 */
async function write(
  context: CompactContext,
  entries: readonly Entry[],
  { plan, order: { trigger, focus, fit = Number.POSITIVE_INFINITY }, model, calls }: Writing,
): Promise<Written> {
  const { policy, summarizerWindow: window } = context.compaction;
  const { summarized, previous, range, cut } = plan;
  const count = policy.countTokens;
  const startedAt = context.now();
  const { text: answer, reduction } = await summarize(
    plan.messages,
    { previous: previous.text, focus },
    {
      model,
      window,
      policy,
      limits: context.limits,
      now: context.now,
      signal: context.signal,
      calling: context.calling,
      onCall: (call) => calls.push(call),
      onWarning: (message) => warnOnce(context, message),
      onRetry: (attempt, message, delayMs) =>
        context.emitEvent({ type: 'retrying', attempt, message, delayMs }),
    },
  );
  const files = fileSets(summarized, fileSetsIn(previous.state));
  const tags = fileTags(files);
  const text = tags === '' ? answer : `${answer}\n\n${tags}`;
  const missing = missingSections(answer);
  const usage = usageOf(calls);
  const output = usage.output + usage.reasoning;
  const sizes = sizesOf(entries, { summary: text, cut, count });
  if (sizes.after > fit)
    throw new NoSummary(
      `the view with the summary is still too large (${sizes.after} tokens; the limit is ${Math.floor(fit)})`,
    );
  if (sizes.after >= sizes.before)
    throw new NoSummary(
      `the view with the summary is not smaller (${sizes.after} tokens; before: ${sizes.before})`,
    );
  const { provider, model: name } = modelMeta(model);
  const state = {
    summary: text,
    range,
    trigger,
    compaction_type: reduction === 'none' ? 'whole' : reduction,
    summarized_through: range[1],
    first_kept: cut,
    turns_summarized: previous.turns + turnsIn(summarized),
    ...(provider !== undefined && { provider }),
    model: name,
    summary_tokens: estimateTokens([{ role: 'user', content: [{ type: 'text', text }] }], count),
    summarization_input_tokens: totalOf(usage) - output,
    summarization_output_tokens: output,
    duration_ms: context.now() - startedAt,
    ...(focus !== undefined && { focus }),
    ...(missing.length > 0 && { missing_sections: [...missing] }),
    read_files: [...files.read],
    modified_files: [...files.modified],
    tokens_before: sizes.before,
    tokens_after: sizes.after,
  };
  return { state, sizes, reduction };
}

/** The error of a session that cannot be compacted. */
export function notCompacted(session: string, error: NoSummary): SessionError {
  const { summarizer, retryAt } = error;
  return new SessionError('SESSION_COMPACTION_FAILED', `cannot compact '${session}': ${error.message}`, {
    data: {
      session,
      ...(summarizer !== undefined && { summarizer: summarizer.session }),
      ...(retryAt !== undefined && { retryAt }),
    },
    cause: error,
  });
}
