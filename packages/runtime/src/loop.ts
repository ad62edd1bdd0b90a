import { type Appended, assistantText, type Draft, type Json, note, type TapeStore } from '@tapedeck/tape';
import type { ToolSet } from 'ai';
import { type BatchEnd, runBatch } from './batch.ts';
import type { Chunk } from './chunks.ts';
import type { DeckConfig, Limits } from './config.ts';
import { isUnstorable, messageOf, SessionError } from './errors.ts';
import type { SessionEvent } from './events.ts';
import type { Answer, LanguageModel, ModelFailure, ModelMessage } from './model.ts';
import type { OpenCall } from './open-batch.ts';
import { unbegunResults } from './orphans.ts';
import type { Finish } from './run.ts';
import type { Phase } from './status.ts';
import type { DeckTools } from './tool-traits.ts';
import { promptOf, takeTurn } from './turn.ts';
import { addUsage, noUsage, type Usage } from './usage.ts';

/** What the loop works with. */
export interface LoopContext {
  readonly run: string;
  readonly session: string;
  readonly store: TapeStore;
  readonly model: LanguageModel;
  readonly summarizer: LanguageModel | undefined;
  readonly tools: DeckTools;
  /** The tools as they are sent. */
  readonly definitions: ToolSet;
  readonly instructions: string | undefined;
  readonly limits: Required<Limits>;
  /** What each tool is given as `context`: the directory of the session's worktree, if it has one. */
  readonly toolContext: { readonly workspace?: string };
  readonly onApproval: DeckConfig['onApproval'];
  readonly cost: DeckConfig['cost'];
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Shows a chunk to everybody who watches. */
  readonly emit: (chunk: Chunk) => void;
  readonly tell: (event: SessionEvent) => void;
  /** Says what the run is at. */
  readonly enter: (phase: Phase) => void;
  readonly retrying: (attempt: number, message: string) => void;
  /** Commits entries under the run's lease. */
  readonly append: (drafts: readonly Draft[]) => Promise<Appended>;
  /** Commits what a live answer came to, in place of its chunks. */
  readonly settle: (drafts: readonly Draft[]) => Promise<Appended>;
  /**
   * Does what arrived in the inbox, at a point where no call is open, and takes in messages for this run. True when
   * there were any. `last`: the run would end here.
   */
  readonly takeMessages: (at: 'step' | 'last') => Promise<boolean>;
}

/** What the loop came to. */
export interface LoopResult {
  readonly finish: Finish;
  readonly text: string;
  readonly steps: number;
  readonly usage: Usage;
  readonly error?: SessionError;
}

/**
 * Turns until nothing is left to do (G62). Contract: an entry is committed before it is acted on, a call before it is run,
 * its result right after; whatever cannot be recorded stops the run (laws 4 and 11). What arrived in the inbox is
 * done between steps, when no call is open. It begins with the calls that were left open, if any.
 */
export async function runLoop(context: LoopContext, open: readonly OpenCall[] = []): Promise<LoopResult> {
  const { limits, signal, tell } = context;
  let done: Omit<LoopResult, 'finish' | 'error'> = { text: '', steps: 0, usage: noUsage };
  let calls = open;
  let messages: readonly ModelMessage[] = open.length === 0 ? [] : (await promptOf(context)).messages;
  let answer: Answer | undefined;
  for (;;) {
    if (calls.length > 0) context.enter('processing');
    const { end, unbegun } = calls.length === 0 ? nothingToRun : await runBatch(context, calls, messages);
    if (end === 'waiting') return { ...done, ...complete(context, 'waiting') };
    if (signal.aborted) return { ...done, ...(await recordAbort(context, answer, { ...done, unbegun })) };
    const more = answer === undefined || calls.length > 0;
    const mayGoOn = done.steps < limits.maxSteps;
    const steered = mayGoOn && (await context.takeMessages(more ? 'step' : 'last'));
    const willContinue = mayGoOn && (more || steered);
    if (answer !== undefined)
      tell({ type: 'iteration-completed', iteration: done.steps, usage: answer.usage, willContinue });
    if (signal.aborted) return { ...done, ...(await settleAbort(context, [])) };
    if (!willContinue) {
      if (more) await context.append([note('run/halted', { run: context.run, steps: done.steps })]);
      return { ...done, ...complete(context, more ? 'halted' : finishOf(answer)) };
    }
    const turn = await takeTurn(context, done.steps + 1);
    done = { ...done, steps: done.steps + 1, usage: addUsage(done.usage, turn.room) };
    if ('failure' in turn) {
      const text = turn.partial.map(({ payload }) => assistantText(payload as Json)).join('');
      return { ...done, ...(text !== '' && { text }), ...(await recordFailure(context, turn)) };
    }
    answer = turn.answer;
    calls = answer.calls;
    messages = turn.messages;
    done = { ...done, text: answer.text, usage: addUsage(done.usage, answer.usage) };
  }
}

const nothingToRun: BatchEnd = { end: 'done', unbegun: [] };

function finishOf(answer: Answer | undefined): Finish {
  return answer?.finish === 'length' ? 'length' : answer?.finish === 'error' ? 'error' : 'stop';
}

function complete({ tell }: LoopContext, finish: Finish): { readonly finish: Finish } {
  tell({ type: 'session-completed', finish, haltedAtLimit: finish === 'halted' });
  return { finish };
}

async function recordFailure(
  context: LoopContext,
  { failure, partial }: { failure: ModelFailure; partial: readonly Draft[] },
): Promise<Pick<LoopResult, 'finish' | 'error'>> {
  if (context.signal.aborted) return await settleAbort(context, partial);
  const { message, response } = failure;
  const payload = { run: context.run, message, ...(response !== undefined && { response }) };
  // Calls of a broken answer were never asked for in full: they must not hold up what comes next.
  const said = [...partial, ...unbegunResults(partial, context.run)];
  await settleEnd(context, said, note('run/error', payload));
  return { ...complete(context, 'error'), error: modelError(context.session, failure) };
}

function modelError(session: string, failure: ModelFailure): SessionError {
  if (failure.cause instanceof SessionError) return failure.cause;
  return new SessionError(
    'SESSION_MODEL_FAILED',
    `cannot go on with '${session}': the model failed: ${failure.message}`,
    { data: { session }, cause: failure.cause },
  );
}

async function recordAbort(
  context: LoopContext,
  answer: Answer | undefined,
  { steps, unbegun }: { readonly steps: number; readonly unbegun: readonly string[] },
): Promise<Pick<LoopResult, 'finish'>> {
  if (answer !== undefined)
    context.tell({ type: 'iteration-completed', iteration: steps, usage: answer.usage, willContinue: false });
  return await settleAbort(context, [], unbegun);
}

/** Half an answer that is too large for an entry is let go: that the run has ended must be on the tape. */
async function settleEnd({ settle }: LoopContext, said: readonly Draft[], end: Draft): Promise<void> {
  try {
    await settle([...said, end]);
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    await settle([end]);
  }
}

/** What was said so far and that it was broken off are one act: alone, the first would look like an answer. */
async function settleAbort(
  context: LoopContext,
  partial: readonly Draft[],
  unbegun: readonly string[] = [],
): Promise<Pick<LoopResult, 'finish'>> {
  const reason = messageOf(context.signal.reason);
  await settleEnd(context, partial, note('run/aborted', { run: context.run, reason, unbegun }));
  context.tell({ type: 'session-cancelled', reason });
  return { finish: 'aborted' };
}
