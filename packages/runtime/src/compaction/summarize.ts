import type { StoredMessage } from '@tapedeck/tape';
import { NoSummary } from './no-summary.ts';
import { type Asking, ask, outputMax, type Reduction, type Summarizer } from './summary-call.ts';
import type { SummaryRequest } from './summary-prompt.ts';
import { transcriptOf, withoutMiddle } from './transcript.ts';

export interface Summary {
  readonly text: string;
  readonly reduction: Reduction;
}

/**
 * Writes a summary. If the whole transcript is too large, tries in turn, as the policy allows: without
 * outputs of calls, in pieces, without its middle. Retries transient failures.
 * @throws NoSummary; the reason of the signal when it aborts
 */
export async function summarize(
  messages: readonly StoredMessage[],
  { previous, focus }: Omit<SummaryRequest, 'transcript'>,
  summarizer: Summarizer,
): Promise<Summary> {
  const { smartRecovery } = summarizer.policy;
  const whole = transcriptOf(messages);
  const pruned = smartRecovery.pruneToolOutputs ? transcriptOf(messages, { outputs: false }) : whole;
  const asking: Asking = { summarizer };
  const attempt = async (transcript: string, reduction: Reduction): Promise<Summary | undefined> => {
    const text = await ask({ transcript, previous, focus }, { reduction, asking });
    return text === undefined ? undefined : { text, reduction };
  };
  const first = await attempt(whole, 'none');
  if (first !== undefined) return first;
  const second = pruned === whole ? undefined : await attempt(pruned, 'pruned');
  if (second !== undefined) return second;
  if (smartRecovery.chunkedSummarize)
    for (const size of sizes(pruned, summarizer)) {
      const pieces = piecesOf(pruned, size);
      if (pieces.length > piecesMax) break;
      const texts = await inPieces(pieces, { previous, focus }, asking);
      if (texts !== undefined) return { text: texts.join('\n\n'), reduction: 'chunked' };
    }
  if (smartRecovery.dropMiddle)
    for (const size of sizes(pruned, summarizer)) {
      const third = await attempt(withoutMiddle(pruned, size), 'middle-dropped');
      if (third !== undefined) return third;
    }
  throw new NoSummary('the transcript is too large for the model that summarises', {
    tooLarge: true,
    cause: asking.refusal,
  });
}

/** The most model calls for one summary in pieces; a window that is far too small would need hundreds. */
const piecesMax = 24;

async function inPieces(
  pieces: readonly string[],
  { previous, focus }: Omit<SummaryRequest, 'transcript'>,
  asking: Asking,
): Promise<readonly string[] | undefined> {
  const texts: string[] = [];
  for (const [i, transcript] of pieces.entries()) {
    const request = { transcript, previous: i === 0 ? previous : undefined, focus };
    const text = await ask(request, { reduction: 'chunked', asking });
    if (text === undefined) return undefined;
    texts.push(text);
  }
  return texts;
}

/** Sizes of pieces to try, in characters: what the window allows, then smaller ones. */
function sizes({ length }: string, { window, policy }: Summarizer): readonly number[] {
  const halves = [2, 4, 8].map((n) => Math.ceil(length / n));
  if (window === undefined) return halves;
  const room = Math.floor((window.window - outputMax(policy, window)) * 2);
  // The model has already refused the whole.
  return [room, ...halves.filter((size) => size < room)].filter((size) => size > 0 && size < length);
}

/** Splits a text into pieces of about a size, between messages where possible. */
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
