import { setTimeout as sleep } from 'node:timers/promises';
import { textTokens } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';
import { messageOf } from '../errors.ts';
import { type Answer, callModel, type LanguageModel, ModelFailure } from '../model/model.ts';
import { comeBackAfter, isOverflow, type RetryLimits, retryDelay } from '../model/retry.ts';
import type { ModelWindow } from '../model/window.ts';
import { within } from '../tools/within.ts';
import { NoSummary } from './no-summary.ts';
import { type ResolvedPolicy, summaryMax } from './policy.ts';
import { type SummaryRequest, summarizerInstructions, summaryPrompt } from './summary-prompt.ts';

/** The model that writes a summary, and its bounds. */
export interface Summarizer {
  readonly model: LanguageModel;
  /** Undefined: only a refusal of the model shows that a prompt is too large. */
  readonly window: ModelWindow | undefined;
  readonly policy: ResolvedPolicy;
  readonly limits: RetryLimits;
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** Runs a model call when its provider has a free slot. */
  readonly calling: <T>(call: () => Promise<T>) => Promise<T>;
  /** Called with each request once it has an answer or a failure. */
  readonly onCall: (call: SummaryCall) => void;
  readonly onWarning: (message: string) => void;
  readonly onRetry: (attempt: number, message: string, delayMs: number) => void;
}

/** How a transcript that is too large was made smaller. */
export type Reduction = 'none' | 'pruned' | 'chunked' | 'middle-dropped';

/** One request to the summarizer, with its answer or failure. */
export interface SummaryCall {
  /** SHA-256 of the prompt. */
  readonly prompt: string;
  readonly reduction: Reduction;
  readonly answer?: Answer;
  readonly failure?: string;
  /** The id of the response, if the failure gives one. */
  readonly response?: string | undefined;
}

/** The summarizer, and its last refusal. */
export interface Asking {
  readonly summarizer: Summarizer;
  /** The last error that refused a prompt as too large. */
  refusal?: unknown;
}

/**
 * Requests a summary. Retries transient failures.
 * @returns undefined if the prompt is too large
 * @throws NoSummary; the reason of the signal when it aborts
 */
export async function ask(
  request: SummaryRequest,
  { reduction, asking }: { readonly reduction: Reduction; readonly asking: Asking },
): Promise<string | undefined> {
  const { summarizer } = asking;
  const { policy, window, limits, signal } = summarizer;
  // A tape can hold a lone surrogate; providers refuse a request with one.
  const prompt = summaryPrompt(request).toWellFormed();
  if (
    window !== undefined &&
    textTokens(prompt, policy.countTokens) + outputMax(policy, window) > window.window
  )
    return undefined;
  for (let attempt = 1; ; attempt += 1) {
    const { answer, failure } = await call(prompt, summarizer);
    const facts = { prompt: sha256(prompt), reduction };
    if (answer !== undefined) {
      summarizer.onCall({ ...facts, answer });
      const text = answer.text.trim();
      if (text === '') throw new NoSummary('the model that summarises returned no text');
      if (answer.finish === 'content-filter')
        throw new NoSummary('a content filter cut off the answer of the model that summarises');
      return text;
    }
    const { message, cause, response, isSent } = failure;
    if (isSent) summarizer.onCall({ ...facts, failure: message, response });
    signal.throwIfAborted();
    if (isOverflow(cause)) {
      asking.refusal = cause;
      return undefined;
    }
    const now = summarizer.now();
    const retries = retriesOf(policy, limits);
    const delayMs = retryDelay(cause, { attempt, limits: { ...limits, retries }, now });
    if (delayMs === undefined) {
      const retryAt = comeBackAfter(cause, { limits, now })?.retryAt;
      const until = retryAt === undefined ? '' : ` (its provider takes no calls until ${retryAt})`;
      throw new NoSummary(`the model that summarises failed${until}: ${message}`, { retryAt, cause });
    }
    summarizer.onRetry(attempt, message, delayMs);
    await sleep(delayMs, undefined, { signal });
  }
}

/** The result of one call. */
type Outcome =
  | { readonly answer: Answer; readonly failure?: undefined }
  | { readonly answer?: undefined; readonly failure: CallFailure };

interface CallFailure {
  readonly message: string;
  readonly cause: unknown;
  readonly response?: string | undefined;
  /** False: aborted while it waited for a slot. */
  readonly isSent: boolean;
}

/** One call: no tools, a low temperature, bounds on the length and time of the answer. */
async function call(
  prompt: string,
  { model, window, policy, signal, calling, onWarning }: Summarizer,
): Promise<Outcome> {
  const { timeoutMs, temperature } = policy.summary;
  const over = new AbortController();
  let isSent = false;
  const pending = calling(async () => {
    isSent = true;
    return await callModel({
      model,
      instructions: summarizerInstructions,
      messages: [{ role: 'user', content: prompt }],
      tools: {},
      settings: { temperature },
      maxOutputTokens: outputMax(policy, window),
      signal: AbortSignal.any([signal, over.signal]),
      onChunk: () => {},
      onWarning,
    });
  });
  // A model that ignores the signal fails later, with no awaiter; this avoids an unhandled rejection.
  pending.catch(() => {});
  try {
    const answer = await within(pending, { timeoutMs, graceMs: 0, signal });
    if (typeof answer !== 'string') return { answer };
  } catch (error) {
    const failure = error instanceof ModelFailure ? error : new ModelFailure(error);
    const { message, cause, response } = failure;
    return { failure: { message, cause, response, isSent } };
  }
  const cause = signal.aborted ? signal.reason : new Error(`no answer within ${timeoutMs} ms`);
  over.abort(cause);
  return { failure: { message: messageOf(cause), cause, isSent } };
}

function retriesOf({ retryOnTransient }: ResolvedPolicy, { retries }: RetryLimits): number {
  if (typeof retryOnTransient === 'number') return retryOnTransient;
  return retryOnTransient ? retries : 0;
}

/** The bound of a summary in tokens: at most the longest answer of the model, and its share of the window. */
export function outputMax({ summary }: ResolvedPolicy, window: ModelWindow | undefined): number {
  if (window === undefined) return summary.maxOutputTokens ?? summaryMax;
  const { window: tokens, maxOutput = Number.POSITIVE_INFINITY } = window;
  const { maxOutputTokens = Number.POSITIVE_INFINITY, share } = summary;
  return Math.max(1, Math.floor(Math.min(maxOutputTokens, maxOutput, share * tokens)));
}
