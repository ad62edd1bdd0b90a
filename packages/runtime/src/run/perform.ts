import { result as resultDraft, type SessionInfo } from '@tapedeck/tape';
import type { Awaitable } from '@tapedeck/tape/store';
import { compactionTerms } from '../compaction/compact.ts';
import { limitsOf, viewPolicyOf } from '../config/config.ts';
import { runPoint } from '../crash-point.ts';
import { isOfDatabase, isUnstorable, SessionError } from '../errors.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { answerSpawns } from '../merge/answer-spawns.ts';
import { canContinue } from '../merge/spawn-calls.ts';
import { modelMeta } from '../model/model.ts';
import { waitingBelow, waitsBelow } from '../status/waits.ts';
import type { OpenCall } from '../stream/call.ts';
import { type Chunk, eventChunk } from '../stream/chunks.ts';
import type { Finish, SessionEvent } from '../stream/events.ts';
import { boundsOf, timerFor } from '../terms/budget.ts';
import { modelFor, namedFor, type RunModel, summarizerOf } from '../terms/model-for.ts';
import { openPermits } from '../terms/permits.ts';
import { isBranch, keptInstructions, usedTools } from '../terms/terms.ts';
import { withToolRules } from '../terms/tool-rules.ts';
import { openBatch } from '../tools/open-batch.ts';
import { closeOrphans } from '../tools/orphans.ts';
import { definitionsOf } from '../tools/schema.ts';
import { type DeckTools, toolOf } from '../tools/traits.ts';
import { runBatch } from '../turn/batch.ts';
import type { LoopContext } from '../turn/context.ts';
import { runLoop } from '../turn/loop.ts';
import { lastTurn } from '../ui/turns.ts';
import { addUsage, noUsage } from '../usage/usage.ts';
import { openWorktree } from '../workspace/open.ts';
import { instructor, sentToolsOf, toolsOf } from './instructions.ts';
import { begin, takeMessages } from './intake.ts';
import { borrowServers, serverFacts } from './mcp-tools.ts';
import { sendersFor, withoutRefusedTools } from './permitted.ts';
import { placeOf, stampOf } from './place.ts';
import { infoOf, type RunRequest, type RunScope } from './request.ts';
import { type RunResult, rowAfter } from './run.ts';
import { fitModel, withoutModel } from './switch-model.ts';
import { assertUnended, markFailed, taskAfter } from './task.ts';
import { tracedRun } from './traced-run.ts';
import { recordUnusable } from './unusable.ts';

/**
 * Performs one run, from the leftovers of a crash to its recorded end. The caller has the lease and releases
 * it. `info` is the session's row, read under the lease.
 */
export async function perform(
  scope: RunScope,
  request: RunRequest,
  known: { readonly chosen: RunModel; readonly info: SessionInfo },
): Promise<RunResult> {
  const { store } = scope.parts;
  return await tracedRun({ store, request, ...known }, async (traceparent) =>
    performIn(scope, request, { ...known, traceparent }),
  );
}

async function performIn(
  scope: RunScope,
  request: RunRequest,
  {
    chosen,
    info,
    traceparent,
  }: { readonly chosen: RunModel; readonly info: SessionInfo; readonly traceparent: string | undefined },
): Promise<RunResult> {
  const { parts, session, hold, emit } = scope;
  const { store, config, now } = parts;
  const { options, run } = request;
  const { model, settings: callSettings, from: modelFrom } = chosen;
  if (options.unlessEnded === true) await assertUnended(scope, info, request);
  const { terms, worktree } = scope.origin;
  const line = await scope.line(info);
  const isTask = info.parent !== undefined && !isBranch(info);
  // A child whose task has not begun has no leftovers.
  const isFresh = isTask && info.task === undefined && info.settled === info.head;
  const continuing = continues(request);
  const items = continuing && !isFresh ? 'continues' : (request.items ?? []);
  const senders = await sendersFor(parts, session.id, { items, options });
  using loan = await borrowServers(parts, { line, senders }, { options, signal: scope.signal });
  if (loan !== undefined && loan.digests.size > 0) scope.uses([...loan.digests.keys()]);
  const all = { ...toolsOf(parts, options), ...loan?.tools };
  const tools = await withoutRefusedTools(parts, line, { tools: all, senders });
  const allowed = usedTools(line);
  const forbidden = (name: string) =>
    allowed !== undefined && !allowed.has(name) && toolOf(tools, name) !== undefined;
  // A child that inherits everything keeps the parent's tool definitions, for the provider's cache; calls of
  // forbidden tools are refused.
  const offered = terms.context === 'part' ? withoutForbidden(tools, forbidden) : tools;
  // Invalid tools and models must fail before anything is written.
  const definitions = await definitionsOf(offered);
  const summarizer = await summarizerOf(parts, {
    info,
    origin: scope.origin,
    above: async () => line.slice(1),
  });
  runPoint('run/before-leftovers');
  const usable = withoutForbidden(tools, forbidden);
  const isRead = request.input !== undefined || request.items !== undefined;
  const left = isFresh ? nothingLeft : await closeLeft(scope, usable, isRead ? info : undefined);
  const { again } = left;
  runPoint('run/orphans-closed');
  const workspace =
    worktree === undefined ? undefined : await openWorktree(parts, session.id, { lease: hold.lease });
  const before = left.isNothing && workspace === undefined ? info : await infoOf(scope);
  if (isTask) await store.sessions.update(session.id, { task: 'running' }, { lease: hold.lease });
  const stamp = stampOf(placeOf(parts, workspace), traceparent);
  const named = await namedFor(
    store,
    { info: before, origin: scope.origin, above: async () => line.slice(1) },
    request,
  );
  const ruled = { ...parts, config: withToolRules(config, tools) };
  const permits = await openPermits(ruled, { line, workspace }, senders);
  const recorder = parts.chunks.recorder(hold.lease, run);
  const broken = new AbortController();
  const unlisten = parts.chunks.onFailure(run, (error) => broken.abort(error));
  // After a failed write the run stops: nothing may continue unrecorded.
  const recording = async <T>(write: () => Awaitable<T>): Promise<T> => {
    broken.signal.throwIfAborted();
    hold.lost.throwIfAborted();
    try {
      return await write();
    } catch (error) {
      if (!isUnstorable(error)) broken.abort(error);
      throw error;
    }
  };
  const show = (chunk: Chunk) => {
    recorder.add(chunk);
    emit(chunk);
  };
  const bounds = boundsOf(store, line);
  const time = timerFor(bounds?.deadline ?? Number.POSITIVE_INFINITY, { now, name: session.name });
  let summaries = noUsage;
  const context: LoopContext = {
    run,
    session: session.name,
    parent: info.parent,
    toolContext: parts.toolContext(info, { run, workspace }),
    forbidden,
    isDoneAgain: parts.isDoneAgain(session.id),
    permits,
    base: info.base > info.floor ? info.base : undefined,
    reached: async () => await bounds?.reached(),
    output: terms.output,
    outputSpec: request.output,
    calling: parts.calling(modelMeta(model).provider),
    store,
    model,
    modelFrom,
    callSettings,
    summarizer,
    compaction: compactionTerms(config, model, summarizer),
    tools,
    definitions,
    sentTools: await sentToolsOf(definitions),
    shows: viewPolicyOf(config),
    instruct: instructor(
      parts,
      {
        kept: keptInstructions(line),
        options,
        model,
        tools: offered,
        definitions: async () => definitions,
        workspace,
      },
      {
        run,
        append: (drafts) => context.append(drafts),
        emitEvent: (event) => context.emitEvent(event),
        onInstructions: scope.onInstructions,
      },
    ),
    limits: { ...limitsOf(config), ...(options.maxSteps !== undefined && { maxSteps: options.maxSteps }) },
    onApproval: config.onApproval,
    // A deck with an approval hook may answer.
    canContinue: async (call) =>
      config.onApproval !== undefined || (await canContinue(store, await infoOf(scope), call)),
    waitsBelow: async () => (await Array.fromAsync(waitsBelow(store, session.id))).flatMap(waitingBelow),
    cost: config.cost,
    signal: firstOf([scope.signal, hold.lost, broken.signal, time.signal]),
    now,
    emit: show,
    emitEvent: (event) => show(eventChunk(event)),
    warned: new Set(),
    enter: scope.enter,
    retrying: scope.retrying,
    spend: (usage) => {
      summaries = addUsage(summaries, usage);
    },
    fork: async (request) => await recording(() => store.lineage.fork(session.id, request)),
    append: async (drafts) =>
      await recording(() => store.entries.append(session.id, stamp(drafts), { lease: hold.lease })),
    giveResult: async (value) =>
      await recording(() =>
        store.entries.append(session.id, stamp([resultDraft(value, { run })]), { lease: hold.lease }),
      ),
    settle: async (drafts) => await recording(() => recorder.settle(stamp(drafts), hold.lease)),
    takeMessages: async (at) => await takeMessages(scope, context, { at, named }),
  };
  try {
    const messageId = continuing && !isFresh ? await answerId(scope, run) : run;
    const start = () => {
      context.emitEvent({ type: 'run-started', run, session: session.name, at: now() });
      show({ type: 'start', messageId });
    };
    if (again.length > 0) {
      start();
      await runBatch(context, again, []);
    }
    const deferred: SessionEvent[] = [];
    await fitModel(
      { ...context, emitEvent: (event) => deferred.push(event) },
      {
        config,
        before: async () =>
          (
            await modelFor(
              parts,
              { info: before, origin: scope.origin, above: async () => line.slice(1) },
              { options: {} },
            )
          ).model,
      },
    );
    const { warnings, decisions, superseded, parted } = await begin(scope, request, {
      context,
      named,
      stamp,
      before,
    });
    if (again.length === 0) start();
    for (const chunk of decisions) show(chunk);
    if (superseded.length + parted.length > 0)
      context.emitEvent({
        type: 'superseded',
        calls: superseded,
        ...(parted.length > 0 && { parted }),
      });
    const servers = await serverFacts(parts, session.id, { run, loan });
    if (servers.drafts.length > 0) await context.append(servers.drafts);
    for (const message of [...warnings, ...servers.warnings]) context.emitEvent({ type: 'warning', message });
    for (const event of deferred) context.emitEvent(event);
    runPoint('run/begun');
    // The drained inbox may have held entries with calls.
    const isSettled = request.inboxIsEmpty === true && before.settled === before.head;
    const open = isSettled ? [] : await openBatch(store, session.id);
    const result = await runLoop(context, open);
    broken.signal.throwIfAborted();
    // A warning that it cannot be kept is an event of this run.
    await parts.traffic?.settle();
    const after = isTask
      ? await store.sessions.update(session.id, { task: taskAfter[result.finish] }, { lease: hold.lease })
      : await infoOf(scope);
    runPoint('run/ended');
    show(endChunk(result.finish, result.error?.message));
    const usage = addUsage(result.usage, summaries);
    const ended = { run, session: session.name, from: before.head + 1, to: after.head, ...result, usage };
    rowAfter.set(ended, after);
    return ended;
  } catch (error) {
    const cause = broken.signal.aborted ? broken.signal.reason : error;
    // A run that cannot be recorded has failed; the parent of a child must not wait for it.
    if (!(context.isDoneAgain && isOfDatabase(cause))) await markFailed(scope);
    const isTooSmall = error instanceof SessionError && error.code === 'SESSION_MODEL_TOO_SMALL';
    if (isTooSmall && request.items !== undefined)
      return { ...(await recordUnusable(scope, withoutModel(request), error)), usage: summaries };
    throw cause;
  } finally {
    unlisten();
    await recorder.close();
    time.stop();
  }
}

/** What earlier runs have left. */
interface LeftOver {
  /** The calls to run again. */
  readonly again: readonly OpenCall[];
  /** Nothing was left, and nothing was written. */
  readonly isNothing: boolean;
}

const nothingLeft: LeftOver = { again: [], isNothing: true };

/** Settles the leftovers of earlier runs. `info` is the row, where nothing was written since it was read. */
async function closeLeft(
  { parts: { store }, session, hold }: RunScope,
  tools: DeckTools,
  info: SessionInfo | undefined,
): Promise<LeftOver> {
  const hadLeftovers = await settleLeftovers(store, session.id, hold);
  // Without open calls there are none to answer.
  if (!hadLeftovers && info !== undefined && info.settled === info.head) return nothingLeft;
  await answerSpawns(store, session.id, { hold, tools });
  return { again: await closeOrphans(store, session.id, { hold, tools }), isNothing: false };
}

/**
 * Aborts with the first of the signals of one run, which end with it. Node.js keeps a table of what `AbortSignal.any` has
 * joined, which grows with the number of runs between two collections of garbage.
 */
function firstOf(signals: readonly AbortSignal[]): AbortSignal {
  const either = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) either.abort(signal.reason);
    else signal.addEventListener('abort', () => either.abort(signal.reason), { once: true });
  }
  return either.signal;
}

function withoutForbidden(tools: DeckTools, forbidden: (name: string) => boolean): DeckTools {
  return Object.fromEntries(Object.entries(tools).filter(([name]) => !forbidden(name)));
}

/** Whether a run begins with no message of its own: it continues an answer. */
function continues({ input, items = [] }: RunRequest): boolean {
  return input === undefined && !items.some(({ body }) => body.type === 'input');
}

/** The id of the message that a run continues, so that a chat adds to it. */
async function answerId({ parts: { store }, session }: RunScope, run: string): Promise<string> {
  return (await lastTurn(store, session.id))?.id ?? run;
}

function endChunk(finish: Finish, message: string | undefined): Chunk {
  if (finish === 'aborted') return { type: 'abort' };
  if (finish === 'error') return { type: 'error', errorText: message ?? 'the run failed' };
  return { type: 'finish' };
}
