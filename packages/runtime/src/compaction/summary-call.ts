import { setTimeout as sleep } from 'node:timers/promises';
import { sha256, textTokens } from '@tapedeck/tape';
import { messageOf } from '../errors.ts';
import { type Answer, callModel, type LanguageModel, ModelFailure } from '../model/model.ts';
import { isOverflow, isPassing, retryDelay } from '../model/retry.ts';
import type { ModelWindow } from '../model/window.ts';
import { within } from '../tools/within.ts';
import { NoSummary } from './no-summary.ts';
import type { ResolvedPolicy } from './policy.ts';
import { type SummaryRequest, summarizerInstructions, summaryPrompt } from './summary-prompt.ts';

/** Who writes a summary, and within which bounds. */
export interface Summarizer {
  readonly model: LanguageModel;
  /** Undefined: what is too large is found out by asking. */
  readonly window: ModelWindow | undefined;
  readonly policy: ResolvedPolicy;
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly signal: AbortSignal;
  /** Makes a model call when its provider has room for one. */
  readonly calling: <T>(call: () => Promise<T>) => Promise<T>;
  /** Told of each request, once it has come to something. */
  readonly onCall: (call: SummaryCall) => void;
  readonly onRetry: (attempt: number, message: string, delayMs: number) => void;
}

/** How what was too large for the summarizer was made smaller. */
export type Reduction = 'none' | 'pruned' | 'chunked' | 'middle-dropped';

/** A request to a model that summarises, and what it came to: an answer, or why there was none. */
export interface SummaryCall {
  /** SHA-256 of the prompt. */
  readonly prompt: string;
  readonly reduction: Reduction;
  readonly answer?: Answer;
  readonly failure?: string;
  /** The id of the response, where a failure tells it. */
  readonly response?: string | undefined;
}

/** Who is asked, and what it refused. */
export interface Asking {
  readonly summarizer: Summarizer;
  /** The last refusal of what was too large. */
  refusal?: unknown;
}

/**
 * The summary of a request; undefined when it is too large. A failure that may pass is tried again.
 * @throws NoSummary; the signal's reason when it is aborted
 */
export async function ask(
  request: SummaryRequest,
  { reduction, asking }: { readonly reduction: Reduction; readonly asking: Asking },
): Promise<string | undefined> {
  const { summarizer } = asking;
  const { policy, window, retries, signal } = summarizer;
  // Half of a surrogate pair may stand on a tape; servers refuse a request with one.
  const prompt = summaryPrompt(request).toWellFormed();
  if (
    window !== undefined &&
    textTokens(prompt, policy.countTokens) + outputMax(policy, window) > window.window
  )
    return undefined;
  for (let attempt = 1; ; attempt += 1) {
    const { answer, failure } = await call(prompt, summarizer);
    const asked = { prompt: sha256(prompt), reduction };
    if (answer !== undefined) {
      summarizer.onCall({ ...asked, answer });
      const text = answer.text.trim();
      if (text === '') throw new NoSummary('the model that summarises said nothing');
      return text;
    }
    const { message, cause, response, isSent } = failure;
    if (isSent) summarizer.onCall({ ...asked, failure: message, response });
    signal.throwIfAborted();
    if (isOverflow(cause)) {
      asking.refusal = cause;
      return undefined;
    }
    if (!policy.retryOnTransient || attempt > retries || !isPassing(cause))
      throw new NoSummary(`the model that summarises failed: ${message}`, { cause });
    const delayMs = retryDelay(cause, attempt, summarizer.retryDelayMs);
    summarizer.onRetry(attempt, message, delayMs);
    await sleep(delayMs, undefined, { signal });
  }
}

/** What one call came to. */
type Outcome =
  | { readonly answer: Answer; readonly failure?: undefined }
  | { readonly answer?: undefined; readonly failure: CallFailure };

interface CallFailure {
  readonly message: string;
  readonly cause: unknown;
  readonly response?: string | undefined;
  /** False: it was given up while it waited for its turn. */
  readonly isSent: boolean;
}

/** One call: no tools, a low temperature, a bound on its answer and on its time (G44). */
async function call(
  prompt: string,
  { model, window, policy, signal, calling }: Summarizer,
): Promise<Outcome> {
  const { timeoutMs, temperature } = policy.summary;
  const over = new AbortController();
  let isSent = false;
  const asked = calling(async () => {
    isSent = true;
    return await callModel({
      model,
      instructions: summarizerInstructions,
      messages: [{ role: 'user', content: prompt }],
      tools: {},
      temperature,
      maxOutputTokens: outputMax(policy, window),
      signal: AbortSignal.any([signal, over.signal]),
      onChunk: () => {},
    });
  });
  // One that heeds no signal is left behind: it must not fail unseen.
  asked.catch(() => {});
  try {
    const answer = await within(asked, { timeoutMs, graceMs: 0, signal });
    if (typeof answer !== 'string') return { answer };
  } catch (error) {
    const failure = error instanceof ModelFailure ? error : new ModelFailure(error);
    const { message, cause, response } = failure;
    return { failure: { message, cause, response, isSent } };
  }
  const cause = signal.aborted ? signal.reason : new Error(`it did not answer in ${timeoutMs} ms`);
  over.abort(cause);
  return { failure: { message: messageOf(cause), cause, isSent } };
}

/** The longest summary that a model is asked for: no more than it gives, nor than a quarter of its window. */
export function outputMax({ summary }: ResolvedPolicy, window: ModelWindow | undefined): number {
  if (window === undefined) return summary.maxOutputTokens;
  const { maxOutput = summary.maxOutputTokens } = window;
  return Math.max(1, Math.floor(Math.min(summary.maxOutputTokens, maxOutput, window.window / 4)));
}
