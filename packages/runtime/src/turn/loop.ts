import type { Json } from '@tapedeck/tape';
import { assistantText } from '@tapedeck/tape/internal';
import type { Answer, ModelMessage } from '../model/model.ts';
import type { OpenCall } from '../stream/call.ts';
import { finishAfter } from '../stream/events.ts';
import { Steps } from '../telemetry/steps.ts';
import type { Reached } from '../terms/budget.ts';
import { addUsage, noUsage } from '../usage/usage.ts';
import { type BatchEnd, runBatch } from './batch.ts';
import type { LoopContext, LoopResult } from './context.ts';
import { complete, halt, recordAbort, recordFailure, settleAbort } from './end.ts';
import { giveResult, pendingResult } from './result.ts';
import { promptOf, takeTurn } from './turn.ts';

/**
 * Takes turns until the model calls no more tools. A call is committed before it runs, its result right
 * after; a failed write stops the run. The inbox is handled between steps, when no call is open. Starts with
 * the open calls, if any.
 */
export async function runLoop(context: LoopContext, open: readonly OpenCall[] = []): Promise<LoopResult> {
  const steps = new Steps();
  try {
    return await loop(context, open, steps);
  } catch (error) {
    steps.fail(error);
    throw error;
  } finally {
    steps.end();
  }
}

async function loop(context: LoopContext, open: readonly OpenCall[], steps: Steps): Promise<LoopResult> {
  const { limits, signal, emitEvent } = context;
  let done: Omit<LoopResult, 'finish' | 'error'> = { text: '', steps: 0, usage: noUsage };
  let calls = open;
  let messages: readonly ModelMessage[] = open.length === 0 ? [] : (await promptOf(context)).messages;
  let answer: Answer | undefined;
  const pending = open.length > 0 ? undefined : await pendingResult(context);
  if (context.output !== undefined && pending !== undefined)
    return await giveResult(context, { schema: context.output, done, pending });
  for (;;) {
    if (calls.length > 0) context.enter('processing');
    const { end, unbegun } =
      calls.length === 0 ? nothingToRun : await steps.within(() => runBatch(context, calls, messages));
    if (end === 'waiting') return { ...done, ...complete(context, 'waiting') };
    if (signal.aborted) return { ...done, ...(await recordAbort(context, answer, { ...done, unbegun })) };
    const more = answer === undefined || calls.length > 0;
    const hasStepsLeft = done.steps < limits.maxSteps;
    const steered = hasStepsLeft && (await context.takeMessages(more ? 'step' : 'last'));
    const willContinue = hasStepsLeft && (more || steered);
    if (answer !== undefined)
      emitEvent({ type: 'iteration-completed', iteration: done.steps, usage: answer.usage, willContinue });
    if (signal.aborted) return { ...done, ...(await settleAbort(context, [])) };
    const reached = willContinue ? await context.reached() : more ? outOfSteps(done.steps) : undefined;
    if (reached !== undefined) return { ...done, ...(await halt(context, reached, done.steps)) };
    if (!willContinue) {
      const finish = finishAfter(answer?.finish);
      if (finish === 'stop' && context.output !== undefined)
        return await giveResult(context, { schema: context.output, done, pending: { state: 'due' } });
      return { ...done, ...complete(context, finish) };
    }
    await steps.begin(done.steps + 1);
    const turn = await steps.within(() => takeTurn(context, done.steps + 1));
    done = { ...done, steps: done.steps + 1 };
    if ('failure' in turn) {
      steps.fail(turn.failure);
      const text = turn.partial.map(({ payload }) => assistantText(payload as Json)).join('');
      return { ...done, ...(text !== '' && { text }), ...(await recordFailure(context, turn)) };
    }
    answer = turn.answer;
    calls = answer.calls;
    messages = turn.messages;
    done = { ...done, text: answer.text, usage: addUsage(done.usage, answer.usage) };
  }
}

function outOfSteps(steps: number): Reached {
  return { limit: 'steps', message: `the limit of ${steps} ${steps === 1 ? 'step' : 'steps'} is reached` };
}

const nothingToRun: BatchEnd = { end: 'done', unbegun: [] };
