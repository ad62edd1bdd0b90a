import { type Draft, note } from '@tapedeck/tape';
import { isOfDatabase, isUnstorable, messageOf, SessionError } from '../errors.ts';
import { type Answer, type ModelFailure, modelMeta } from '../model/model.ts';
import { withModelFrom } from '../model/name.ts';
import { type ComeBack, comeBackAfter } from '../model/retry.ts';
import type { Finish } from '../stream/events.ts';
import { OutOfTime, type Reached } from '../terms/budget.ts';
import { unbegunResults } from '../tools/orphans.ts';
import type { Failed, LoopContext, LoopResult } from './context.ts';

/** Publishes the end of a run. */
export function complete({ emitEvent }: LoopContext, finish: Finish): { readonly finish: Finish } {
  emitEvent({ type: 'session-completed', finish, haltedAtLimit: finish === 'halted' });
  return { finish };
}

/** Ends a run at a limit, and records which. */
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
  { failure, partial, callMeta }: Failed,
): Promise<Pick<LoopResult, 'finish' | 'error'>> {
  if (context.signal.aborted) return await settleAbort(context, partial);
  if (context.isDoneAgain && isOfDatabase(failure.cause)) throw failure.cause;
  const { message, response } = failure;
  const comeBack = comeBackAfter(failure.cause, { limits: context.limits, now: context.now() });
  const payload = {
    run: context.run,
    message,
    ...(comeBack !== undefined && { retry_at: comeBack.retryAt }),
    ...(response !== undefined && { response }),
    ...callMeta,
  };
  // Close the calls of an incomplete answer. Open ones would block the session.
  const partialDrafts = [...partial, ...unbegunResults(partial, context.run)];
  await settleEnd(context, partialDrafts, note('run/error', payload));
  return { ...complete(context, 'error'), error: modelError(context, failure, comeBack) };
}

/** The error of a failed call. It says where the name of the model comes from, and when the provider takes calls. */
function modelError(
  { session, model, modelFrom }: LoopContext,
  { cause, message }: ModelFailure,
  comeBack: ComeBack | undefined,
): SessionError {
  if (cause instanceof SessionError) return withModelFrom(cause, modelFrom);
  const { retryAt, isLate = false } = comeBack ?? {};
  const until = retryAt === undefined ? '' : ` (its provider takes no calls until ${retryAt})`;
  const error = new SessionError(
    isLate ? 'SESSION_RETRY_LATER' : 'SESSION_MODEL_FAILED',
    `cannot continue '${session}': the model failed${until}: ${message}`,
    { data: { session, ...modelMeta(model), ...(retryAt !== undefined && { retryAt }) }, cause },
  );
  return withModelFrom(error, modelFrom);
}

export async function recordAbort(
  context: LoopContext,
  answer: Answer | undefined,
  { steps, unbegun }: { readonly steps: number; readonly unbegun: readonly string[] },
): Promise<Pick<LoopResult, 'finish'>> {
  if (answer !== undefined)
    context.emitEvent({
      type: 'iteration-completed',
      iteration: steps,
      usage: answer.usage,
      willContinue: false,
    });
  return await settleAbort(context, [], unbegun);
}

/**
 * Settles a partial answer and the end of the run; drops an answer too large to store, so that the end is
 * recorded.
 */
async function settleEnd(
  { settle }: LoopContext,
  partialDrafts: readonly Draft[],
  end: Draft,
): Promise<void> {
  try {
    await settle([...partialDrafts, end]);
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    await settle([end]);
  }
}

/**
 * Records a partial answer and the abort in one transaction: alone, the first would look like a complete
 * answer.
 */
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
  context.emitEvent({ type: 'session-cancelled', reason });
  return { finish: 'aborted' };
}
