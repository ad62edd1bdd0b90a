import { type Json, type JsonObject, note, user } from '@tapedeck/tape';
import { assistantText } from '@tapedeck/tape/internal';
import { runPoint } from '../crash-point.ts';
import { messageOf, SessionError } from '../errors.ts';
import { type OutputSpec, outputOf } from '../model/output.ts';
import { finishAfter } from '../stream/events.ts';
import { schemaFault } from '../tools/schema.ts';
import { addUsage } from '../usage/usage.ts';
import type { LoopContext, LoopResult } from './context.ts';
import { complete, halt, recordFailure } from './end.ts';
import { takeTurn } from './turn.ts';

/** The user message that requests the structured result after the task. */
const ask = 'Return the result of your task now, as JSON that matches the given schema, and nothing else.';

/**
 * The last step of a session with an output schema: requests the result and records the answer as the
 * session's result. An answer that does not match the schema fails the run.
 */
export async function giveResult(
  context: LoopContext,
  { schema, done, pending }: { schema: JsonObject; done: Done; pending: PendingResult },
): Promise<LoopResult> {
  if (pending.state === 'answered') return await record(context, schema, { ...done, text: pending.text });
  const reached = await context.reached();
  if (reached !== undefined) return { ...done, ...(await halt(context, reached, done.steps)) };
  if (pending.state === 'due') await context.append([user(ask, { run: context.run, source: 'output' })]);
  runPoint('result/requested');
  const turn = await takeTurn(context, done.steps + 1, schema);
  const after = { ...done, steps: done.steps + 1 };
  if ('failure' in turn) return { ...after, ...(await recordFailure(context, turn)) };
  const { text, usage } = turn.answer;
  context.emitEvent({ type: 'iteration-completed', iteration: after.steps, usage, willContinue: false });
  const answered = { ...after, text, usage: addUsage(after.usage, usage) };
  if (finishAfter(turn.answer.finish) === 'filtered')
    return { ...answered, ...complete(context, 'filtered') };
  return await record(context, schema, answered);
}

type Done = Omit<LoopResult, 'finish' | 'error'>;

/** The state of a pending result: to request, requested, or answered and not recorded yet. */
type PendingResult =
  | { readonly state: 'due' | 'requested' }
  | { readonly state: 'answered'; readonly text: string };

/** The number of entries that are searched for it. */
const backMax = 50;

/**
 * The state of the pending result when a run continues from the tail; undefined while the task itself is
 * unfinished.
 */
export async function pendingResult({
  output,
  store,
  session,
}: LoopContext): Promise<PendingResult | undefined> {
  if (output === undefined) return undefined;
  // Only complete entries of runs count, not partial answers, merges or notes.
  const written = (await Array.fromAsync(store.entries.read(session, { own: true, last: backMax }))).filter(
    ({ kind, meta }) =>
      kind !== 'event' && kind !== 'compaction' && meta.run !== undefined && meta.partial !== true,
  );
  const [before, last] = [written.at(-2), written.at(-1)];
  if (last?.kind !== 'message') return undefined;
  if (last.meta.source === 'output') return { state: 'requested' };
  if (last.meta.finish !== 'stop') return undefined;
  if (before?.meta.source !== 'output') return { state: 'due' };
  return { state: 'answered', text: assistantText(last.payload) };
}

async function record(context: LoopContext, schema: JsonObject, after: Done): Promise<LoopResult> {
  const { run } = context;
  const terms = { schema, spec: context.outputSpec };
  const alone = await resultOf(after.text, terms);
  // A model that was interrupted may have given only the rest of its answer.
  const whole = 'value' in alone ? undefined : await wholeAnswer(context);
  const joined = whole === undefined ? alone : await resultOf(whole, terms);
  const result = 'value' in joined ? joined : alone;
  if ('value' in result) {
    await context.giveResult(result.value);
    runPoint('result/recorded');
    return { ...after, ...complete(context, 'stop'), output: result.output };
  }
  const message = `its result cannot be used: ${result.fault}`;
  await context.append([note('run/error', { run, message })]);
  const error = new SessionError(
    'SESSION_BAD_RESULT',
    `cannot use the result of '${context.session}': ${result.fault}`,
    {
      data: { session: context.session },
    },
  );
  return { ...after, ...complete(context, 'error'), error };
}

/** The text of the last answer with the pieces that an interruption left of it; undefined when it is in one piece. */
async function wholeAnswer({ store, session }: LoopContext): Promise<string | undefined> {
  const { text, textFrom, value } = await store.lineage.collect(session);
  return textFrom === undefined || value !== undefined ? undefined : text;
}

/** A result as the tape gets it, and as its schema makes it. */
type Result = { readonly value: Json; readonly output: unknown } | { readonly fault: string };

/** Parses a text as a result that matches a schema, or returns why it is not one. */
async function resultOf(
  text: string,
  { schema, spec }: { readonly schema: JsonObject; readonly spec: OutputSpec<unknown> | undefined },
): Promise<Result> {
  let value: Json;
  try {
    value = JSON.parse(withoutFence(text)) as Json;
  } catch (error) {
    return { fault: `it is not JSON: ${messageOf(error)}` };
  }
  const fault = await schemaFault(value, schema);
  if (fault !== undefined) return { fault };
  try {
    return { value, output: await outputOf(spec, value) };
  } catch (error) {
    // A schema can check more than its JSON Schema says.
    return { fault: messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error) };
  }
}

/** Removes the code fence that models without schema support put around JSON. */
function withoutFence(text: string): string {
  return /^\s*```(?:json)?\n([\s\S]*?)\n?```\s*$/.exec(text)?.[1] ?? text;
}
