import { assistantText, type Json, type JsonObject, note, user } from '@tapedeck/tape';
import { runPoint } from '../crash-point.ts';
import { messageOf, SessionError } from '../errors.ts';
import { schemaFault } from '../tools/schema.ts';
import { addUsage } from '../usage/usage.ts';
import type { LoopContext, LoopResult } from './context.ts';
import { complete, halt, recordFailure } from './end.ts';
import { takeTurn } from './turn.ts';

/** What a child that owes a result in a form is told once it has done its work. */
const ask =
  'Give the result of your task now, as JSON that follows the schema that you were given, and nothing else.';

/**
 * The last step of a child that is to give its result in a form: its model is asked for it, and what it says is recorded as the
 * session's result. What does not follow the schema fails the run: nothing else is passed off as the result.
 */
export async function giveResult(
  context: LoopContext,
  { schema, done, owed }: { schema: JsonObject; done: Done; owed: Owed },
): Promise<LoopResult> {
  if (owed.state === 'answered') return await record(context, schema, { ...done, text: owed.text });
  const reached = await context.reached();
  if (reached !== undefined) return { ...done, ...(await halt(context, reached, done.steps)) };
  if (owed.state === 'ask') await context.append([user(ask, { run: context.run, source: 'output' })]);
  runPoint('result/asked');
  const turn = await takeTurn(context, done.steps + 1, schema);
  const so = { ...done, steps: done.steps + 1 };
  if ('failure' in turn) return { ...so, ...(await recordFailure(context, turn)) };
  const { text, usage } = turn.answer;
  context.tell({ type: 'iteration-completed', iteration: so.steps, usage, willContinue: false });
  return await record(context, schema, { ...so, text, usage: addUsage(so.usage, usage) });
}

type Done = Omit<LoopResult, 'finish' | 'error'>;

/** Where a session stands that is to give a result: to be asked for it, asked, or it has said one that is not recorded yet. */
type Owed = { readonly state: 'ask' | 'asked' } | { readonly state: 'answered'; readonly text: string };

/** How far back that is looked for. */
const backMax = 50;

/** What is left to do of giving a result, for a run that goes on from the tail; nothing when the work itself is not done. */
export async function owedResult({ output, store, session }: LoopContext): Promise<Owed | undefined> {
  if (output === undefined) return undefined;
  // What a run wrote: half an answer is none, and merges and notes say nothing of it.
  const said = (await Array.fromAsync(store.read(session, { own: true, last: backMax }))).filter(
    ({ kind, meta }) =>
      kind !== 'event' && kind !== 'compaction' && meta.run !== undefined && meta.partial !== true,
  );
  const [before, last] = [said.at(-2), said.at(-1)];
  if (last?.kind !== 'message') return undefined;
  if (last.meta.source === 'output') return { state: 'asked' };
  if (last.meta.finish !== 'stop') return undefined;
  if (before?.meta.source !== 'output') return { state: 'ask' };
  return { state: 'answered', text: assistantText(last.payload) };
}

async function record(context: LoopContext, schema: JsonObject, after: Done): Promise<LoopResult> {
  const { run } = context;
  const { text } = after;
  const result = resultOf(text, schema);
  if ('value' in result) {
    await context.giveResult(result.value);
    runPoint('result/recorded');
    return { ...after, ...complete(context, 'stop') };
  }
  const message = `its result cannot be used: ${result.fault}`;
  await context.append([note('run/error', { run, message })]);
  const error = new SessionError(
    'SESSION_BAD_RESULT',
    `cannot take the result of '${context.session}': ${result.fault}`,
    {
      data: { session: context.session },
    },
  );
  return { ...after, ...complete(context, 'error'), error };
}

/** A result that follows a schema, or why a text is none. */
function resultOf(text: string, schema: JsonObject): { readonly value: Json } | { readonly fault: string } {
  let value: Json;
  try {
    value = JSON.parse(withoutFence(text)) as Json;
  } catch (error) {
    return { fault: `it is no JSON: ${messageOf(error)}` };
  }
  const fault = schemaFault(value, schema);
  return fault === undefined ? { value } : { fault };
}

/** Models that do not know schemas put JSON into a fence. */
function withoutFence(text: string): string {
  return /^\s*```(?:json)?\n([\s\S]*?)\n?```\s*$/.exec(text)?.[1] ?? text;
}
