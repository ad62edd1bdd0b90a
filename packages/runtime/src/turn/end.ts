import { type Draft, note } from '@tapedeck/tape';
import { isUnstorable, messageOf, SessionError } from '../errors.ts';
import type { Answer, ModelFailure } from '../model/model.ts';
import type { Finish } from '../stream/events.ts';
import { OutOfTime, type Reached } from '../terms/budget.ts';
import { unbegunResults } from '../tools/orphans.ts';
import type { Failed, LoopContext, LoopResult } from './context.ts';

/** Tells that a run has come to its end. */
export function complete({ tell }: LoopContext, finish: Finish): { readonly finish: Finish } {
  tell({ type: 'session-completed', finish, haltedAtLimit: finish === 'halted' });
  return { finish };
}

/** A limit ends the run: whoever reads the tape, the parent's model too, is told which. */
export async function halt(
  context: LoopContext,
  { limit, message }: Reached,
  steps: number,
): Promise<Pick<LoopResult, 'finish'>> {
  await context.append([note('run/halted', { run: context.run, steps, limit, message })]);
  return complete(context, 'halted');
}

export async function recordFailure(
  context: LoopContext,
  { failure, partial, asked }: Failed,
): Promise<Pick<LoopResult, 'finish' | 'error'>> {
  if (context.signal.aborted) return await settleAbort(context, partial);
  const { message, response } = failure;
  const payload = { run: context.run, message, ...(response !== undefined && { response }), ...asked };
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

export async function recordAbort(
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
export async function settleAbort(
  context: LoopContext,
  partial: readonly Draft[],
  unbegun: readonly string[] = [],
): Promise<Pick<LoopResult, 'finish'>> {
  const { run, signal } = context;
  const reason = messageOf(signal.reason);
  if (signal.reason instanceof OutOfTime) {
    const { limit, message } = signal.reason;
    await settleEnd(context, partial, note('run/halted', { run, limit, message, unbegun }));
    return complete(context, 'halted');
  }
  await settleEnd(context, partial, note('run/aborted', { run, reason, unbegun }));
  context.tell({ type: 'session-cancelled', reason });
  return { finish: 'aborted' };
}
