import {
  assistant,
  clientCalls,
  type Draft,
  type Entry,
  isObject,
  type Meta,
  note,
  TapeError,
  type TapeStore,
  toolResult,
  view,
} from '@tapedeck/tape';
import { messageOf, SessionError } from './errors.ts';
import type { SessionEvent } from './events.ts';
import type { Hold } from './hold.ts';
import {
  type Answer,
  type AskedCall,
  callModel,
  type LanguageModel,
  ModelFailure,
  modelMeta,
  type ToolSet,
} from './model.ts';
import { toPrompt } from './prompt.ts';
import type { Finish } from './run.ts';
import { type Executed, executeCall, skipped, unstorable } from './tools.ts';
import { addUsage, type CostOf, costMeta, noUsage, type Usage, usageJson } from './usage.ts';

/** What the loop works with. */
export interface LoopContext {
  readonly run: string;
  readonly session: string;
  readonly store: TapeStore;
  readonly hold: Hold;
  readonly model: LanguageModel;
  readonly tools: ToolSet;
  readonly instructions: string | undefined;
  readonly cost: CostOf | undefined;
  readonly maxSteps: number;
  readonly signal: AbortSignal;
  readonly emit: (event: SessionEvent) => void;
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
 * Turns until nothing is left to do. Contract: an entry is committed before it is acted on, a call before it is run,
 * its result right after; whatever cannot be recorded stops the run (laws 4 and 11). What arrived in the inbox is
 * done between steps, when no call is open.
 */
export async function runLoop(context: LoopContext): Promise<LoopResult> {
  let usage = noUsage;
  let text = '';
  for (let step = 1; ; step += 1) {
    const outcome = await turn(context, step);
    if ('failure' in outcome)
      return { ...(await recordFailure(context, outcome.failure, step)), text, usage, steps: step };
    const { answer } = outcome;
    usage = addUsage(usage, answer.usage);
    text = answer.text;
    await runCalls(context, answer.calls, outcome.messages);
    await context.hold.drain();
    const more = answer.calls.length > 0 && !context.signal.aborted;
    const willContinue = more && step < context.maxSteps;
    context.emit({ type: 'iteration-completed', iteration: step, usage: answer.usage, willContinue });
    if (willContinue) continue;
    if (context.signal.aborted) return { ...(await recordAbort(context)), text, usage, steps: step };
    if (more) await recordHalt(context, step);
    context.emit({ type: 'session-completed', finish: finishOf(answer, more), haltedAtLimit: more });
    return { finish: finishOf(answer, more), text, usage, steps: step };
  }
}

function finishOf(answer: Answer, halted: boolean): Finish {
  if (halted) return 'halted';
  return answer.finish === 'length' ? 'length' : answer.finish === 'error' ? 'error' : 'stop';
}

type Prompt = Awaited<ReturnType<typeof toPrompt>>;
type Turn = { readonly answer: Answer; readonly messages: Prompt } | { readonly failure: ModelFailure };

/** One model call, and its answer on the tape. */
async function turn(context: LoopContext, step: number): Promise<Turn> {
  const { store, session, model, signal, emit } = context;
  const provider = modelMeta(model).provider;
  const entries = await Array.fromAsync(store.viewEntries(session));
  const shown = view(entries, { target: provider === undefined ? {} : { provider } });
  const messages = await toPrompt(shown.messages, (hash) => store.blob(hash));
  let answer: Answer;
  try {
    signal.throwIfAborted();
    answer = await callModel({
      model,
      instructions: context.instructions,
      messages,
      tools: context.tools,
      signal,
      onText: (text) => emit({ type: 'content-chunk', text }),
      onReasoning: (text) => emit({ type: 'reasoning-chunk', text }),
    });
  } catch (error) {
    return { failure: error instanceof ModelFailure ? error : new ModelFailure(error, '') };
  }
  const meta: Meta = {
    run: context.run,
    step,
    ...answer.meta,
    usage: usageJson(answer.usage),
    ...costMeta(context.cost, answer.usage, answer.meta.model),
    view: shown.digest,
  };
  // An answer without content is recorded too: the call was made, and paid for.
  await append(context, [assistant(answer.content, meta)]);
  for (const { toolCallId, toolName: name, input } of answer.calls)
    emit({ type: 'tool-detected', toolCallId, name, input });
  return { answer, messages };
}

/** Runs calls one after another; after one that fails the rest get a result that says so (K26). */
async function runCalls(context: LoopContext, calls: readonly AskedCall[], messages: Prompt): Promise<void> {
  const { emit, signal, tools } = context;
  let stopped: string | undefined;
  for (const call of calls) {
    const { toolCallId, toolName: name } = call;
    if (signal.aborted) stopped = 'the run was aborted';
    if (stopped === undefined) emit({ type: 'tool-started', toolCallId, name });
    const executed: Executed =
      stopped === undefined ? await executeCall(tools, call, { messages, signal }) : skipped(call, stopped);
    const done = await appendResult(context, call, executed);
    if (!done.success) stopped ??= 'an earlier call of this batch failed';
    emit({ type: 'tool-completed', toolCallId, name, success: done.success, output: done.output });
  }
}

/** Appends a result. One that no entry can hold (too large, no JSON) is the tool's failure, and told as such. */
async function appendResult(context: LoopContext, call: AskedCall, done: Executed): Promise<Executed> {
  const meta = { run: context.run };
  try {
    await append(context, [{ ...done.draft, meta }]);
    return done;
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_BAD_ENTRY') throw error;
    const failure = unstorable(call, error.message);
    await append(context, [{ ...failure.draft, meta }]);
    return failure;
  }
}

async function recordFailure(
  context: LoopContext,
  failure: ModelFailure,
  step: number,
): Promise<Pick<LoopResult, 'finish' | 'error'>> {
  const partial: Draft[] =
    failure.partial === ''
      ? []
      : [assistant(failure.partial, { run: context.run, step, ...modelMeta(context.model), partial: true })];
  if (context.signal.aborted) {
    return await recordAbort(context, partial);
  }
  const payload = {
    run: context.run,
    message: failure.message,
    ...(failure.response !== undefined && { response: failure.response }),
  };
  await append(context, [...partial, note('run/error', payload)]);
  context.emit({ type: 'session-completed', finish: 'error', haltedAtLimit: false });
  return { finish: 'error', error: modelError(context.session, failure) };
}

function modelError(session: string, failure: ModelFailure): SessionError {
  if (failure.cause instanceof SessionError) return failure.cause;
  return new SessionError(
    'SESSION_MODEL_FAILED',
    `cannot go on with '${session}': the model failed: ${failure.message}`,
    {
      data: { session },
      cause: failure.cause,
    },
  );
}

/** What was said so far and that it was broken off are one act: alone, the first would look like an answer. */
async function recordAbort(
  context: LoopContext,
  partial: readonly Draft[] = [],
): Promise<Pick<LoopResult, 'finish'>> {
  const reason = messageOf(context.signal.reason);
  await append(context, [...partial, note('run/aborted', { run: context.run, reason })]);
  context.emit({ type: 'session-cancelled', reason });
  return { finish: 'aborted' };
}

async function recordHalt(context: LoopContext, steps: number): Promise<void> {
  await append(context, [note('run/halted', { run: context.run, steps })]);
}

async function append({ store, session, hold }: LoopContext, drafts: readonly Draft[]): Promise<void> {
  hold.lost.throwIfAborted();
  await store.append(session, drafts, { lease: hold.lease });
}

/**
 * Gives the calls that a crash left open a recorded result: what they did is not known, and they are never run again
 * (G70, K23).
 */
export async function closeOrphans(store: TapeStore, session: string, hold: Hold): Promise<void> {
  const info = await store.find(session);
  if (info === undefined || info.settled === info.head) return;
  const open = new Map<string, string>();
  for await (const entry of store.read(session, { from: info.settled + 1 })) trackCalls(open, entry);
  const drafts = [...open].map(([toolCallId, toolName]) =>
    toolResult(
      { toolCallId, toolName },
      { type: 'error-text', value: 'Outcome unknown: aborted by host restart.' },
      { source: 'repair' },
    ),
  );
  if (drafts.length > 0) await store.append(session, drafts, { lease: hold.lease });
}

function trackCalls(open: Map<string, string>, { kind, payload }: Entry): void {
  if (!isObject(payload)) return;
  if (kind === 'tool-result') open.delete(String(payload.toolCallId));
  const asked = new Set(clientCalls(payload));
  for (const part of Array.isArray(payload.content) ? payload.content : [])
    if (isObject(part) && asked.has(String(part.toolCallId)) && part.type === 'tool-call')
      open.set(String(part.toolCallId), String(part.toolName));
}
