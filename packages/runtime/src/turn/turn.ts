/**
 * Turns: one model call and the calls of tools that it asks for. `loop.ts` repeats them until the run ends, `turn.ts`
 * makes the model call, `batch.ts` runs the calls, `compact-if-needed.ts` compacts before a call that would not fit,
 * `result.ts` asks a child for a result in a form, `end.ts` records how a run ended. `call-meta.ts` and `sent-tools.ts` are
 * what an answer records of the request. `context.ts` is all that these files know of the run. Imports `config` and what lies below.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { assistant, type Draft, type JsonObject, type Meta, note } from '@tapedeck/tape';
import { partialAnswer } from '@tapedeck/tape/internal';
import { runPoint } from '../crash-point.ts';
import { isUnstorable } from '../errors.ts';
import { commonEnd, keptInstructions, needsCacheMarks, withCachePoints } from '../model/cache-points.ts';
import { type Answer, callModel, ModelFailure, type ModelMessage, modelMeta } from '../model/model.ts';
import { toPrompt } from '../model/prompt.ts';
import { isOverflow, retryDelay } from '../model/retry.ts';
import { warnOnce } from '../model/sdk-warnings.ts';
import { type Chunk, headChunk, isAnswer } from '../stream/chunks.ts';
import { nameOf } from '../tools/traits.ts';
import { costMeta, usageJson } from '../usage/usage.ts';
import { callMeta, viewFor } from './call-meta.ts';
import { compactAfterOverflow, compactIfNeeded } from './compact-if-needed.ts';
import type { Failed, LoopContext, Prompt } from './context.ts';
import { toolsMeta } from './sent-tools.ts';

/** The outcome of a turn: a recorded answer, or a failure with the part of the answer that arrived. */
export type Turn = Answered | Failed;

interface Answered {
  readonly answer: Answer;
  readonly messages: readonly ModelMessage[];
}

/**
 * Makes one model call and records its answer. Retries a transient failure while no part of an answer has
 * arrived; compacts once when the call is too large for the model. With `output`, the answer must match that
 * schema.
 */
export async function takeTurn(context: LoopContext, step: number, output?: JsonObject): Promise<Turn> {
  let refusal: ModelFailure | undefined;
  let wasRefused = false;
  for (let attempt = 1; ; attempt += 1) {
    context.enter('processing');
    const chunks: Chunk[] = [];
    let recorded: JsonObject | undefined;
    let shown = await promptOf(context);
    try {
      if (attempt === 1 || refusal !== undefined) {
        const made = await (refusal === undefined ? compactIfNeeded : compactAfterOverflow)(context, shown);
        if (!made && refusal !== undefined) return { failure: refusal, partial: [] };
        refusal = undefined;
        if (made) {
          context.enter('processing');
          shown = await promptOf(context);
        }
      }
      const instructions = await context.instruct(shown.entries);
      recorded = callMeta(context, shown.view, instructions);
      return await ask(context, step, { ...shown, instructions, callMeta: recorded, chunks, output });
    } catch (error) {
      if (!(error instanceof ModelFailure)) throw error;
      const isLost = error.cause instanceof UnstorableAnswer;
      const partial = isLost ? [] : partialOf(context, step, { chunks, callMeta: recorded });
      const failed = { failure: error, partial, callMeta: recorded };
      if (isLost) return failed;
      // The head chunk alone is not part of an answer.
      if (context.signal.aborted || chunks.filter(isAnswer).length > 1) return failed;
      if (isOverflow(error.cause)) {
        if (wasRefused) return failed;
        wasRefused = true;
        refusal = error;
      } else {
        const delayMs = retryDelay(error.cause, { attempt, limits: context.limits, now: context.now() });
        if (delayMs === undefined) return failed;
        if (!(await waitForRetry(context, failed, { attempt, delayMs }))) return failed;
      }
    }
  }
}

/** The messages of the next model call, from the current view. */
export async function promptOf(context: LoopContext): Promise<Prompt> {
  const { store, session, model, base } = context;
  const entries = await Array.fromAsync(store.views.entries(session));
  const shown = viewFor(context, entries);
  const load = (hash: string) => store.entries.blob(hash);
  const messages = await toPrompt(shown.messages, load);
  const prompt = { entries, view: shown };
  const { provider } = modelMeta(model);
  if (!needsCacheMarks(provider)) return { ...prompt, messages };
  const inherited = entries.filter(({ seq }) => seq <= (base ?? 0));
  const before = inherited.length === 0 ? [] : await toPrompt(viewFor(context, inherited).messages, load);
  return { ...prompt, messages: withCachePoints(messages, commonEnd(before, messages)) };
}

interface Asking extends Prompt {
  readonly instructions: string | undefined;
  readonly callMeta: JsonObject;
  readonly chunks: Chunk[];
  readonly output?: JsonObject | undefined;
}

async function ask(
  context: LoopContext,
  step: number,
  { messages, entries, instructions, callMeta, chunks, output }: Asking,
): Promise<Answered> {
  const { model, signal } = context;
  const take = (chunk: Chunk) => {
    chunks.push(chunk);
    context.emit(chunk);
  };
  take(headChunk({ step, ...modelMeta(model) }));
  context.enter('streaming');
  const isKept = instructions !== undefined && needsCacheMarks(modelMeta(model).provider);
  const answer = await context.calling(async () =>
    callModel({
      model,
      instructions: isKept ? keptInstructions(instructions) : instructions,
      messages,
      tools: context.definitions,
      signal,
      settings: context.callSettings,
      onChunk: take,
      onWarning: (message) => warnOnce(context, message),
      output,
    }),
  );
  const meta: Meta = {
    run: context.run,
    step,
    ...answer.meta,
    usage: usageJson(answer.usage),
    ...costMeta(context.cost, answer.usage, modelMeta(model).model),
    ...callMeta,
    ...toolsMeta(entries, context.sentTools),
  };
  context.enter('completing');
  runPoint('answer/arrived');
  await recordAnswer(context, assistant(answer.content, meta));
  runPoint('answer/recorded');
  for (const call of answer.calls)
    context.emitEvent({ type: 'tool-detected', ...nameOf(context.tools, call), input: call.input });
  return { answer, messages };
}

/**
 * Records an answer, also an empty one, because the call was made and paid for. One that cannot be stored is
 * a failure.
 */
async function recordAnswer(context: LoopContext, draft: Draft): Promise<void> {
  try {
    await context.settle([draft]);
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    throw new ModelFailure(new UnstorableAnswer(error));
  }
}

/** An answer that cannot be stored, not even in part. */
class UnstorableAnswer extends Error {
  constructor(cause: Error) {
    super(`its answer cannot be recorded: ${cause.message}`, { cause });
  }
}

/** The part of an answer that arrived before the failure. */
function partialOf(
  context: LoopContext,
  step: number,
  { chunks, callMeta }: { readonly chunks: readonly Chunk[]; readonly callMeta: JsonObject | undefined },
): readonly Draft[] {
  const meta = { run: context.run, step, ...modelMeta(context.model), ...callMeta };
  const partial = partialAnswer(chunks, meta);
  return partial === undefined ? [] : [partial];
}

/** False when the run was aborted meanwhile. */
async function waitForRetry(
  context: LoopContext,
  { failure, callMeta }: Failed,
  { attempt, delayMs }: { readonly attempt: number; readonly delayMs: number },
): Promise<boolean> {
  const { run, signal } = context;
  const { message, response } = failure;
  const payload = {
    run,
    attempt,
    message,
    delay_ms: delayMs,
    ...(response !== undefined && { response }),
    ...callMeta,
  };
  await context.settle([note('run/retrying', payload)]);
  context.retrying(attempt, message);
  context.emitEvent({ type: 'retrying', attempt, message, delayMs });
  try {
    await sleep(delayMs, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
