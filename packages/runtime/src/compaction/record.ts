import { assistant, type Draft, type ForkRequest, type JsonObject, note, toolResult } from '@tapedeck/tape';
import { summarizerKind } from '@tapedeck/tape/internal';
import { assertDraft } from '@tapedeck/tape/store';
import { isUnstorable, messageOf } from '../errors.ts';
import { type Answer, type LanguageModel, modelMeta } from '../model/model.ts';
import { addUsage, type CostOf, costMeta, noUsage, type Usage, usageJson } from '../usage/usage.ts';
import type { CompactionOrder, RecordContext } from './context.ts';
import type { SummarizerRef } from './no-summary.ts';
import type { CompactionPlan } from './plan.ts';
import type { SummaryCall } from './summary-call.ts';

/** The calls of a summarizer, and how the compaction ended. */
export interface SummaryWork {
  readonly plan: CompactionPlan;
  readonly order: CompactionOrder;
  readonly model: LanguageModel;
  readonly calls: readonly SummaryCall[];
  /** The reduction that the summary was made with, or why it failed. */
  readonly end: { readonly reduction: string } | { readonly failure: unknown };
}

/**
 * Records the session of a summarizer: a child that inherits the summarised range by reference and holds the
 * request and each answer with its usage. One transaction writes it when the work is over; the session is
 * ended, so no run continues it and no merge is due.
 * @returns undefined if no model was called
 */
export async function recordSummarizer(
  context: RecordContext,
  work: SummaryWork,
): Promise<SummarizerRef | undefined> {
  if (work.calls.length === 0) return undefined;
  const { session, id } = await context.fork(summarizerFork(work, context));
  const head = (await context.store.sessions.find(id))?.headHash ?? '';
  return { session, id, head };
}

/** The fork that records a summarizer. Pure. */
function summarizerFork(
  { plan, order, model, calls, end }: SummaryWork,
  { session, run, signal, cost }: RecordContext,
): ForkRequest {
  const { trigger, focus } = order;
  const { seq: previous } = plan.previous;
  const what = `${session}@${plan.range.join('-')}`;
  const request: JsonObject = {
    trigger,
    ...(focus !== undefined && { focus }),
    ...(previous !== undefined && { previous }),
    view: { ...plan.manifest } as unknown as JsonObject,
    ...('reduction' in end && { reduction: end.reduction }),
    calls: calls.map(callJson),
  };
  const ending =
    'failure' in end
      ? signal.aborted
        ? [note('summary/aborted', { message: messageOf(signal.reason) })]
        : [note('summary/failed', { message: messageOf(end.failure) })]
      : [];
  const answers = calls.flatMap(({ answer }) =>
    answer === undefined ? [] : answerDrafts(answer, { model, cost }),
  );
  return {
    ...plan.span,
    kind: summarizerKind,
    ephemeral: true,
    title: `Summary of ${what}`,
    intention: { nextSteps: `Summarise ${what}${focus === undefined ? '' : `, most of all: ${focus}`}` },
    ...(run !== undefined && { terms: { run } }),
    done: {
      drafts: [note('summary/asked', request), ...answers, ...ending],
      task: 'failure' in end ? (signal.aborted ? 'aborted' : 'failed') : 'completed',
    },
  };
}

function callJson({ prompt, reduction, failure }: SummaryCall): JsonObject {
  return { prompt, reduction, ...(failure !== undefined && { failure }) };
}

/**
 * An answer as received, also an unusable one, since it was paid for. Drops content that no entry can hold.
 */
export function answerDrafts(
  answer: Answer,
  { model, cost }: { model: LanguageModel; cost: CostOf | undefined },
): readonly Draft[] {
  const { raw_input: _, ...facts } = answer.meta;
  const meta = {
    ...facts,
    usage: usageJson(answer.usage),
    ...costMeta(cost, answer.usage, modelMeta(model).model),
  };
  const whole = assistant(answer.content, meta);
  if (!isStorable(whole)) return [assistant([], { ...meta, content_left_out: true })];
  return [whole, ...answer.calls.map(notOffered)];
}

/** The summarizer has no tools: an error result closes a call, so that it does not stay open. */
function notOffered(call: Answer['calls'][number]): Draft {
  const value = 'Not run: the summarizer has no tools.';
  return toolResult(
    call,
    { type: 'error-text', value },
    { source: 'repair', paths: { read: [], write: [] } },
  );
}

function isStorable(draft: Draft): boolean {
  try {
    assertDraft(draft);
    return true;
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    return false;
  }
}

/** The total usage of calls. */
export function usageOf(calls: readonly SummaryCall[]): Usage {
  return calls.reduce((sum, { answer }) => addUsage(sum, answer?.usage ?? noUsage), noUsage);
}

/** The id of the last response, if the provider gave one. */
export function responseOf(calls: readonly SummaryCall[]): string | undefined {
  const last = calls.at(-1);
  const { response } = last?.answer?.meta ?? last ?? {};
  return typeof response === 'string' ? response : undefined;
}
