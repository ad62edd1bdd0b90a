import { AsyncLocalStorage } from 'node:async_hooks';
import { type Draft, type Json, type JsonObject, note } from '@tapedeck/tape';
import PQueue from 'p-queue';
import { runPoint } from '../crash-point.ts';
import { isUnstorable, messageOf } from '../errors.ts';
import type { ModelMessage } from '../model/model.ts';
import {
  type AwaitedAnswer,
  type CallRequest,
  type Decision,
  isAwaited,
  type OpenCall,
} from '../stream/call.ts';
import { rememberCall } from '../telemetry/runs.ts';
import { traced } from '../telemetry/span.ts';
import { grantNotes, recordPermit, refusedBy } from '../terms/permit-notes.ts';
import type { Permit } from '../terms/permits.ts';
import { duringCall } from '../tools/current-call.ts';
import { denied, type Executed, executeCall, refusalOf, skipped, unstorable } from '../tools/execute.ts';
import { awaitsChildren, batchNotes } from '../tools/open-batch.ts';
import { parseArguments, requestsParallel } from '../tools/schema.ts';
import { withTilde } from '../tools/tilde.ts';
import { type DeckTool, nameOf, toolOf } from '../tools/traits.ts';
import { type Patience, within } from '../tools/within.ts';
import { askProgram, hasChanged, requestOf } from './approval.ts';
import type { LoopContext } from './context.ts';

/** The end of a batch of calls: all have results, some wait for a user, client or child, or the run was aborted. */
export interface BatchEnd {
  readonly end: 'done' | 'waiting' | 'aborted';
  /** The calls that did not begin. */
  readonly unbegun: readonly string[];
}

/**
 * Runs the calls of one answer, by default one after another: the calls after a failed one are skipped with
 * an error result, and those after a waiting one are held. Runs them in parallel when one of them requests
 * it.
 */
export async function runBatch(
  context: LoopContext,
  calls: readonly OpenCall[],
  messages: readonly ModelMessage[],
): Promise<BatchEnd> {
  const parallel = calls.length > 1 && calls.some(({ input }) => requestsParallel(input));
  const unbegun = new Set(calls.map(({ toolCallId }) => toolCallId));
  const batch = { context, calls, messages, unbegun };
  const names = calls.map((call) => nameOf(context.tools, call));
  context.emitEvent({ type: 'tool-batch-started', calls: names, parallel, at: context.now() });
  const waiting = await (parallel ? runTogether(batch) : runInTurn(batch));
  if (context.signal.aborted) return { end: 'aborted', unbegun: [...unbegun] };
  if (waiting.length > 0) {
    await recordWaiting(context, waiting);
    return { end: 'waiting', unbegun: [...unbegun] };
  }
  context.emitEvent({ type: 'tool-batch-completed', at: context.now() });
  return { end: 'done', unbegun: [] };
}

interface Batch {
  readonly context: LoopContext;
  readonly calls: readonly OpenCall[];
  readonly messages: readonly ModelMessage[];
  readonly unbegun: Set<string>;
}

/** Returns the waiting call and those held after it. */
async function runInTurn(batch: Batch): Promise<readonly Gated[]> {
  const { context, calls } = batch;
  let halted = false;
  for (const [i, call] of calls.entries()) {
    if (context.signal.aborted) return [];
    if (halted) {
      await finish(context, call, skipped(call, 'an earlier call of this batch failed'));
      continue;
    }
    const gated = await gate(context, call);
    if (context.signal.aborted) return [];
    const success = isAwaited(gated.gate) ? gated.gate : await runOne(batch, gated);
    if (isAwaited(success))
      return [
        { ...gated, gate: success },
        ...calls.slice(i + 1).map((held) => ({ call: held, gate: 'held' as const })),
      ];
    if (success !== false) continue;
    halted = true;
    if (i < calls.length - 1) context.emitEvent({ type: 'tool-batch-halted', at: context.now() });
  }
  return [];
}

/** Returns the waiting calls; all others have run. */
async function runTogether(batch: Batch): Promise<readonly Gated[]> {
  const { context, calls } = batch;
  const gated = await Promise.all(calls.map(async (call) => await gate(context, call)));
  const queue = new PQueue({ concurrency: context.limits.concurrentTools });
  const ends = await Promise.allSettled(
    gated.map(async (one): Promise<Gated> => {
      if (isAwaited(one.gate)) return one;
      const work = AsyncLocalStorage.bind(async () => {
        // The calls before it can have changed where its paths lead.
        const now = context.permits.isRuled ? await gate(context, one.call) : one;
        const success = isAwaited(now.gate) ? now.gate : await runOne(batch, now);
        return isAwaited(success) ? { ...now, gate: success } : now;
      });
      return await queue.add(work);
    }),
  );
  return ends.flatMap((end) => {
    if (end.status === 'rejected') throw end.reason;
    return isAwaited(end.value.gate) ? [end.value] : [];
  });
}

interface Gated {
  readonly call: OpenCall;
  /** What the call waits for before it runs; `held` after a waiting call. */
  readonly gate: 'open' | 'denied' | 'held' | AwaitedAnswer;
  readonly reason?: string | undefined;
  /** What lets it run; absent where no rule counts. */
  readonly permit?: Permit;
  /** What the request for its approval says. */
  readonly request?: CallRequest | undefined;
}

/** Decides whether a call can run now. */
async function gate(context: LoopContext, call: OpenCall): Promise<Gated> {
  const tool = toolOf(context.tools, call.toolName);
  if (call.decision?.approved === false) return decided(call, call.decision);
  // A call that waits for an answer stays open in a deck without its tool, until a deck with the tool runs
  // it.
  if (tool === undefined && call.state === 'waiting' && call.for !== undefined)
    return { call, gate: call.decision === undefined || awaitsChildren(call) ? call.for : 'tool' };
  if (awaitsChildren(call) && !(await context.canContinue(call))) return { call, gate: 'children' };
  if (tool === undefined || refusalOf(context, call) !== undefined) return { call, gate: 'open' };
  const { isRuled } = context.permits;
  if (!isRuled && tool.execute !== undefined && !tool.needsApproval && call.elsewhere !== true)
    return { call, gate: 'open' };
  if (!isRuled && tool.execute !== undefined && call.decision !== undefined && call.claims === undefined)
    return decided(call, call.decision);
  // Request no approval of invalid arguments: the model gets an error result instead.
  const checked = await within(parseArguments(tool, call.input), patienceOf(context));
  if (checked === 'timeout')
    return { call, gate: 'denied', reason: 'its arguments were not checked in time' };
  if (checked === 'aborted' || 'fault' in checked) return { call, gate: 'open' };
  const permit = await context.permits.permit({ tool: call.toolName, input: checked.value }, tool);
  // What a person has approved is on the tape.
  if (call.decision === undefined || permit.verdict !== 'allow') await recordPermit(context, call, permit);
  if (permit.verdict === 'deny') return { call, gate: 'denied', reason: withTilde(refusedBy(permit)) };
  // Its client does what it asks, or does not.
  if (tool.execute === undefined) return { call, gate: 'result' };
  if (call.decision !== undefined)
    return hasChanged(call, permit)
      ? { call, gate: 'denied', reason: 'what it would do has changed since it was approved' }
      : { ...decided(call, call.decision), permit };
  const asks = { tool, call, input: checked.value, permit };
  const request = requestOf(permit, call);
  const decision = await within(decisionOn(context, { ...asks, request }), {
    signal: context.signal,
    timeoutMs: Number.POSITIVE_INFINITY,
    graceMs: 0,
  });
  if (typeof decision === 'object') {
    const { toolCallId } = call;
    const answered = note(batchNotes.answered, { toolCallId, ...decision } as unknown as JsonObject);
    await context.append([answered, ...grantNotes(toolCallId, decision)]);
    runPoint('call/approved');
    return { ...decided({ ...call, decision, claims: request.claims }, decision), permit };
  }
  return decision === 'needless' ? { call, gate: 'open', permit } : { call, gate: 'approval', request };
}

function decided(call: OpenCall, { approved, reason }: Decision): Gated {
  return { call, gate: approved ? 'open' : 'denied', reason };
}

/**
 * Calls `onApproval` if the call needs approval. An error counts as a denial, because the call was not
 * approved.
 */
async function decisionOn(
  { session, parent, onApproval, toolContext }: LoopContext,
  {
    tool,
    call,
    input,
    permit,
    request,
  }: {
    tool: DeckTool;
    call: OpenCall;
    input: unknown;
    permit: Permit;
    request: CallRequest;
  },
): Promise<Decision | 'needless' | undefined> {
  const { toolCallId, toolName } = call;
  try {
    const needed =
      typeof tool.needsApproval === 'function'
        ? await tool.needsApproval(input, { toolCallId, messages: [], context: { ...toolContext } })
        : tool.needsApproval;
    const isNeeded = permit.verdict === 'ask' || (needed === true && !permit.isGranted);
    if (!isNeeded && call.elsewhere !== true) return 'needless';
    return await askProgram(onApproval, {
      session,
      ...(parent !== undefined && { parent }),
      toolCallId,
      toolName,
      input: structuredClone(call.input),
      ...request,
    });
  } catch (error) {
    return { approved: false, reason: messageOf(error) };
  }
}

function patienceOf({ limits, signal }: LoopContext): Patience {
  return { timeoutMs: limits.toolTimeoutMs, graceMs: limits.abortGraceMs, signal };
}

/**
 * Runs a call and records its result. Returns whether it succeeded; `undefined` when the run was aborted
 * first; `children` when children of the call wait for answers.
 */
async function runOne(
  { context, messages, unbegun }: Batch,
  { call, gate, reason, permit }: Gated,
): Promise<boolean | 'children' | undefined> {
  if (context.signal.aborted) return undefined;
  if (gate === 'denied') return await finish(context, call, denied(call, reason));
  const { toolCallId } = call;
  // Record the start of a call that waited: after a crash its outcome is unknown. One that has started children is
  // repeated, and finds them.
  if (call.state !== 'begun' && !awaitsChildren(call))
    await context.append([note(batchNotes.begun, { run: context.run, calls: [{ toolCallId }] })]);
  unbegun.delete(toolCallId);
  context.emitEvent({ type: 'tool-started', ...nameOf(context.tools, call), at: context.now() });
  runPoint('call/before-run');
  const { permits } = context;
  const mayReach = permit === undefined || !permits.isRuled ? undefined : await permits.reach(permit);
  const executed = await tracedCall(context, call, async () =>
    executeCall(call, {
      tools: context.tools,
      context: { ...context.toolContext, ...(mayReach !== undefined && { mayReach }) },
      forbidden: context.forbidden,
      isDoneAgain: context.isDoneAgain,
      messages,
      patience: patienceOf(context),
      onPreliminary: (_, output) =>
        context.emit({ type: 'tool-output-available', toolCallId, output, preliminary: true }),
    }),
  );
  runPoint('call/ran');
  return typeof executed === 'object' ? await finish(context, call, executed) : executed;
}

/** Executes a call within its span. */
async function tracedCall(
  { store, session }: LoopContext,
  { toolName, toolCallId }: OpenCall,
  act: () => ReturnType<typeof executeCall>,
): ReturnType<typeof executeCall> {
  const during = async () => await duringCall({ store, session, toolName, toolCallId }, act);
  return await traced(
    () => ({
      name: `execute_tool ${toolName}`,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': toolName,
        'gen_ai.tool.call.id': toolCallId,
        'gen_ai.tool.type': 'function',
      },
    }),
    async (span) => {
      if (span === undefined) return await during();
      using _ = rememberCall(toolCallId, span);
      const executed = await during();
      if (typeof executed === 'object' && !executed.success) span.fail('tool_error');
      if (executed === undefined) span.fail('aborted');
      return executed;
    },
  );
}

/** Appends a result. One that cannot be stored (too large, not JSON) becomes an error result. */
async function finish(context: LoopContext, call: OpenCall, executed: Executed): Promise<boolean> {
  let done = executed;
  const withRun = (draft: Draft): Draft => ({ ...draft, meta: { run: context.run, ...draft.meta } });
  try {
    await context.append([withRun(done.draft)]);
  } catch (error) {
    if (!isUnstorable(error)) throw error;
    done = unstorable(call, error.message, done.draft.meta);
    await context.append([withRun(done.draft)]);
  }
  runPoint('call/recorded');
  const { toolCallId, toolName: name } = call;
  const { success, output } = done;
  context.emit(outputChunk(call, done));
  context.emitEvent({ type: 'tool-completed', toolCallId, name, success, output, at: context.now() });
  return success;
}

function outputChunk({ toolCallId }: OpenCall, { success, output, draft }: Executed) {
  const { output: typed } = draft.payload as { output: { type?: string } };
  if (typed.type === 'execution-denied') return { type: 'tool-output-denied', toolCallId } as const;
  if (success) return { type: 'tool-output-available', toolCallId, output } as const;
  return { type: 'tool-output-error', toolCallId, errorText: String(output) } as const;
}

async function recordWaiting(context: LoopContext, waiting: readonly Gated[]): Promise<void> {
  const calls = waiting.map(({ call: { toolCallId, toolName }, gate, request }) => ({
    toolCallId,
    toolName,
    for: gate,
    ...request,
  }));
  await context.append([note(batchNotes.waiting, { run: context.run, calls: calls as unknown as Json })]);
  runPoint('batch/waiting');
  for (const { call, gate } of waiting)
    if (gate === 'approval')
      context.emit({
        type: 'tool-approval-request',
        approvalId: call.toolCallId,
        toolCallId: call.toolCallId,
      });
  const own = waiting.flatMap(({ call: { toolCallId, toolName: name, input }, gate, request }) =>
    isAwaited(gate) ? [{ toolCallId, name, input, for: gate, ...request }] : [],
  );
  const below = own.some((call) => call.for === 'children') ? await context.waitsBelow() : [];
  context.emitEvent({ type: 'tool-waiting', calls: [...own, ...below] });
}
