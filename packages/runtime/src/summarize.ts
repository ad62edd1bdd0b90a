import { setTimeout as sleep } from 'node:timers/promises';
import type { StoredMessage } from '@tapedeck/tape';
import type { ResolvedPolicy } from './compaction-policy.ts';
import { messageOf } from './errors.ts';
import { callModel, type LanguageModel, ModelFailure } from './model.ts';
import type { ModelWindow } from './model-window.ts';
import { isOverflow, isPassing, retryDelay } from './retry.ts';
import { type SummaryRequest, summarizerInstructions, summaryPrompt } from './summary-prompt.ts';
import { transcriptOf, withoutMiddle } from './transcript.ts';
import { addUsage, noUsage, type Usage } from './usage.ts';
import { within } from './within.ts';

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
  readonly onRetry: (attempt: number, message: string, delayMs: number) => void;
}

/** How what was too large for the summarizer was made smaller. */
type Reduction = 'none' | 'pruned' | 'chunked' | 'middle-dropped';

export interface Summary {
  readonly text: string;
  readonly usage: Usage;
  readonly reduction: Reduction;
  /** The id of the last response. */
  readonly response: string | undefined;
}

/** No summary could be had. `tooLarge`: because of what it was to be made of, so that asking again is of no use. */
export class NoSummary extends Error {
  readonly tooLarge: boolean;
  /** The id of the response that was of no use, if there was one. */
  readonly response: string | undefined;

  constructor(
    message: string,
    {
      tooLarge = false,
      response,
      cause,
    }: { tooLarge?: boolean; response?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.tooLarge = tooLarge;
    this.response = response;
  }
}

/**
 * Has a summary written: of all at once; where that is too large, without the outputs of calls, then in pieces, then without its middle,
 * as far as the policy allows (G44-G48). A failure that may pass is tried again.
 * @throws NoSummary; the signal's reason when it is aborted
 */
export async function summarize(
  messages: readonly StoredMessage[],
  { previous, focus }: Omit<SummaryRequest, 'transcript'>,
  summarizer: Summarizer,
): Promise<Summary> {
  const { smartRecovery } = summarizer.policy;
  const whole = transcriptOf(messages);
  const pruned = smartRecovery.pruneToolOutputs ? transcriptOf(messages, { outputs: false }) : whole;
  const written: Written = { usage: noUsage, response: undefined };
  const attempt = async (transcript: string, reduction: Reduction): Promise<Summary | undefined> => {
    const text = await ask({ transcript, previous, focus }, { summarizer, written });
    return text === undefined ? undefined : { text, ...written, reduction };
  };
  const first = await attempt(whole, 'none');
  if (first !== undefined) return first;
  const second = pruned === whole ? undefined : await attempt(pruned, 'pruned');
  if (second !== undefined) return second;
  if (smartRecovery.chunkedSummarize)
    for (const size of sizes(pruned, summarizer)) {
      const texts = await inPieces(piecesOf(pruned, size), { previous, focus }, { summarizer, written });
      if (texts !== undefined) return { text: texts.join('\n\n'), ...written, reduction: 'chunked' };
    }
  if (smartRecovery.dropMiddle)
    for (const size of sizes(pruned, summarizer)) {
      const third = await attempt(withoutMiddle(pruned, size), 'middle-dropped');
      if (third !== undefined) return third;
    }
  throw new NoSummary('what is to be summarised is too large for the model that summarises', {
    tooLarge: true,
    cause: written.refusal,
  });
}

/** What asking has come to so far. */
interface Written {
  usage: Usage;
  response: string | undefined;
  /** The last refusal of what was too large. */
  refusal?: unknown;
}

async function inPieces(
  pieces: readonly string[],
  { previous, focus }: Omit<SummaryRequest, 'transcript'>,
  asking: { readonly summarizer: Summarizer; readonly written: Written },
): Promise<readonly string[] | undefined> {
  const texts: string[] = [];
  for (const [i, transcript] of pieces.entries()) {
    const text = await ask({ transcript, previous: i === 0 ? previous : undefined, focus }, asking);
    if (text === undefined) return undefined;
    texts.push(text);
  }
  return texts;
}

/** How large pieces may be, in characters: as the window says, else smaller and smaller. */
function sizes({ length }: string, { window, policy }: Summarizer): readonly number[] {
  const halves = [2, 4, 8].map((n) => Math.ceil(length / n));
  if (window === undefined) return halves;
  const room = Math.floor((window.window - outputMax(policy, window)) * 2);
  return [Math.min(room, length), ...halves.filter((size) => size < room)].filter((size) => size > 0);
}

/** A text in pieces of about a size, parted between messages where there are any. */
function piecesOf(text: string, size: number): readonly string[] {
  const pieces: string[] = [];
  for (const block of text.split(/\n\n(?=\[)/)) {
    const last = pieces.at(-1);
    if (last !== undefined && last.length + block.length < size)
      pieces[pieces.length - 1] = `${last}\n\n${block}`;
    else pieces.push(block);
  }
  return pieces;
}

/** The summary of a request; undefined when it is too large. */
async function ask(
  request: SummaryRequest,
  { summarizer, written }: { readonly summarizer: Summarizer; readonly written: Written },
): Promise<string | undefined> {
  const { policy, window, retries, signal } = summarizer;
  const prompt = summaryPrompt(request);
  if (window !== undefined && tokensIn(prompt, policy) + outputMax(policy, window) > window.window)
    return undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { text, usage, meta } = await call(prompt, summarizer);
      written.usage = addUsage(written.usage, usage);
      written.response = typeof meta.response === 'string' ? meta.response : undefined;
      if (text.trim() === '')
        throw new NoSummary('the model that summarises said nothing', { response: written.response });
      return text.trim();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NoSummary) throw error;
      const cause = error instanceof ModelFailure ? error.cause : error;
      if (isOverflow(cause)) {
        written.refusal = cause;
        return undefined;
      }
      const message = messageOf(cause);
      if (!policy.retryOnTransient || attempt > retries || !isPassing(cause))
        throw new NoSummary(`the model that summarises failed: ${message}`, {
          response: error instanceof ModelFailure ? error.response : undefined,
          cause,
        });
      const delayMs = retryDelay(cause, attempt, summarizer.retryDelayMs);
      summarizer.onRetry(attempt, message, delayMs);
      await sleep(delayMs, undefined, { signal });
    }
  }
}

/** One call: no tools, a low temperature, a bound on its answer and on its time (G44). */
async function call(prompt: string, { model, window, policy, signal, calling }: Summarizer) {
  const { timeoutMs, temperature } = policy.summary;
  const over = new AbortController();
  const answer = calling(async () =>
    callModel({
      model,
      instructions: summarizerInstructions,
      messages: [{ role: 'user', content: prompt }],
      tools: {},
      temperature,
      maxOutputTokens: outputMax(policy, window),
      signal: AbortSignal.any([signal, over.signal]),
      onChunk: () => {},
    }),
  );
  // One that heeds no signal is left behind: it must not fail unseen.
  answer.catch(() => {});
  const got = await within(answer, { timeoutMs, graceMs: 0, signal });
  if (typeof got !== 'string') return got;
  over.abort(new Error(got));
  signal.throwIfAborted();
  throw new NoSummary(`the model that summarises did not answer in ${timeoutMs} ms`);
}

/** The longest summary that a model is asked for: no more than it gives, nor than a quarter of its window. */
function outputMax({ summary }: ResolvedPolicy, window: ModelWindow | undefined): number {
  if (window === undefined) return summary.maxOutputTokens;
  const { maxOutput = summary.maxOutputTokens } = window;
  return Math.max(1, Math.floor(Math.min(summary.maxOutputTokens, maxOutput, window.window / 4)));
}

function tokensIn(text: string, { countTokens }: ResolvedPolicy): number {
  return countTokens === undefined ? Math.ceil(text.length / 4) : countTokens(text);
}
