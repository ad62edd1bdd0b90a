import {
  type Appended,
  type Awaitable,
  type Draft,
  type InboxItem,
  isObject,
  type Json,
  note,
  type SessionInfo,
  type Taken,
  toolResult,
  user,
} from '@tapedeck/tape';
import { runBatch } from './batch.ts';
import { type Chunk, eventChunk } from './chunks.ts';
import { limitsOf } from './config.ts';
import { runPoint } from './crash-point.ts';
import type { DeckParts } from './deck.ts';
import { isUnstorable, messageOf, SessionError } from './errors.ts';
import type { Hold } from './hold.ts';
import { type LoopContext, runLoop } from './loop.ts';
import { type LanguageModel, needModel } from './model.ts';
import { carriedModel, resolveModel } from './model-spec.ts';
import { answerFault, awaitsAnswer, batchNotes, type OpenCall, openBatch } from './open-batch.ts';
import { closeOrphans, settleLeftovers, superseded } from './orphans.ts';
import { decide } from './queue.ts';
import type { Finish, RunResult } from './run.ts';
import type { Input, RunOptions } from './session.ts';
import type { Phase } from './status.ts';
import { definitionsOf } from './tool-schema.ts';
import { denied, plainOutput } from './tools.ts';

/** What a run begins with: a message that was given to it, or what waited in the inbox. */
export interface Job {
  readonly run: string;
  readonly input?: Input | undefined;
  readonly items?: readonly InboxItem[];
  readonly options: RunOptions;
}

/** What a run is done with and through. */
export interface Stage {
  readonly parts: DeckParts;
  readonly session: { readonly name: string; readonly id: string };
  readonly hold: Hold;
  readonly signal: AbortSignal;
  readonly emit: (chunk: Chunk) => void;
  readonly enter: (phase: Phase) => void;
  readonly retrying: (attempt: number, message: string) => void;
  /** Stops the run from within: something in the inbox asks for it. */
  readonly abort: (reason: string) => void;
}

/**
 * The model that a job is for: what it names, else what its session's last message named, else the deck's.
 * @throws SESSION_NO_MODEL and what `resolveModel` throws
 */
export async function modelFor(
  { store, config, env }: DeckParts,
  session: { readonly name: string; readonly id: string },
  { options, items = [] }: Pick<Job, 'options' | 'items'>,
): Promise<LanguageModel> {
  const spec = options.model ?? namedIn(items) ?? (await carriedModel(store, session.id)) ?? config.model;
  const source = spec === undefined ? undefined : await resolveModel(spec, { env, store });
  return needModel(source?.(session.name), session.name);
}

function namedIn(items: readonly InboxItem[]): string | undefined {
  const drafts = items.flatMap(({ body }) => (body.type === 'input' ? body.drafts : []));
  const model = drafts.findLast(({ meta }) => typeof meta?.model === 'string')?.meta?.model;
  return typeof model === 'string' ? model : undefined;
}

/** The model that is named for a job, or was for the session before: its messages bear it. */
async function carriedOn(
  { parts, session }: Stage,
  { options, items = [] }: Job,
): Promise<string | undefined> {
  if (typeof options.model === 'string') return options.model;
  return namedIn(items) ?? (await carriedModel(parts.store, session.id));
}

/** One run, from what a crash left behind to its recorded end. The caller holds the lease and gives it back. */
export async function perform(stage: Stage, job: Job, model: LanguageModel): Promise<RunResult> {
  const { parts, session, hold, emit } = stage;
  const { store, config, now } = parts;
  const { options, run } = job;
  if (options.unlessEnded === true) await needUnended(await infoOf(stage));
  const tools = options.useTools === false ? {} : (options.tools ?? config.tools ?? {});
  // What cannot be used must fail before anything is written.
  const definitions = await definitionsOf(tools);
  const summarizer = await summarizerOf(parts, session.name);
  runPoint('run/before-leftovers');
  await settleLeftovers(store, session.id, hold);
  const again = await closeOrphans(store, session.id, { hold, tools });
  runPoint('run/orphans-closed');
  const before = await infoOf(stage);
  const isTask = before.parent !== undefined;
  if (isTask) await store.setTask(session.id, 'running', { lease: hold.lease });
  const spec = await carriedOn(stage, job);
  const recorder = parts.chunks.recorder(session.id, run);
  const broken = new AbortController();
  const unlisten = parts.chunks.onFailure(run, (error) => broken.abort(error));
  // After a write that failed nothing more is done: it would be done unrecorded (law 11).
  const recording = async (write: () => Awaitable<Appended>) => {
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
  const context: LoopContext = {
    run,
    session: session.name,
    store,
    model,
    summarizer,
    tools,
    definitions,
    instructions: options.instructions ?? config.instructions,
    limits: { ...limitsOf(config), ...(options.maxSteps !== undefined && { maxSteps: options.maxSteps }) },
    onApproval: config.onApproval,
    cost: config.cost,
    signal: AbortSignal.any([stage.signal, hold.lost, broken.signal]),
    now,
    emit: show,
    tell: (event) => show(eventChunk(event)),
    enter: stage.enter,
    retrying: stage.retrying,
    append: async (drafts) => await recording(() => store.append(session.id, drafts, { lease: hold.lease })),
    settle: async (drafts) => await recording(() => recorder.settle(drafts, hold.lease)),
    takeMessages: async (at) => await takeMessages(stage, context, { at, spec }),
  };
  try {
    const start = () => {
      context.tell({ type: 'run-started', run, session: session.name, at: now() });
      show({ type: 'start', messageId: run });
    };
    if (again.length > 0) {
      start();
      await runBatch(context, again, []);
    }
    await begin(stage, job, { context, spec });
    if (again.length === 0) start();
    runPoint('run/begun');
    const result = await runLoop(context, await openBatch(store, session.id));
    broken.signal.throwIfAborted();
    if (isTask) await store.setTask(session.id, taskOf[result.finish], { lease: hold.lease });
    runPoint('run/ended');
    const after = await infoOf(stage);
    show(endChunk(result.finish, result.error?.message));
    return { run, session: session.name, from: before.head + 1, to: after.head, ...result };
  } catch (error) {
    // What could not be recorded ends the run (law 11); the parent of a child must not wait for it.
    await markFailed(stage);
    throw broken.signal.aborted ? broken.signal.reason : error;
  } finally {
    unlisten();
  }
}

/** Appends what the run begins with; input answers the calls that wait for somebody: they are superseded. */
async function begin(
  stage: Stage,
  { input, items = [], run, options }: Job,
  { context, spec }: { context: LoopContext; spec: string | undefined },
): Promise<void> {
  const { hold, parts, session } = stage;
  const open = (await openBatch(parts.store, session.id)).filter(({ state }) => state !== 'begun');
  const isInput = input !== undefined || items.some(({ body }) => body.type === 'input');
  const before = isInput ? superseded(open) : [];
  if (input !== undefined) {
    await hold.drain();
    const meta = { run, source: 'user', ...options.meta, ...(spec !== undefined && { model: spec }) };
    await context.append([...before, user(input, meta)]);
    return;
  }
  const taken = items.map((item, i): Taken => {
    const drafts = itemDrafts(item, { open, run, spec });
    return { id: item.id, drafts: i === 0 ? [...before, ...drafts] : drafts };
  });
  await hold.drain(taken);
}

/** The entries that an item of the inbox becomes. */
function itemDrafts(
  { body, id, source }: InboxItem,
  { open, run, spec }: { open: readonly OpenCall[]; run: string; spec: string | undefined },
): readonly Draft[] {
  const facts = { run, ...(spec !== undefined && { model: spec }) };
  if (body.type === 'input')
    return body.drafts.map((draft) => ({ ...draft, meta: { ...facts, ...draft.meta } }));
  if (body.type !== 'answer') return [];
  const { toolCallId, answer } = body;
  const call = open.find((one) => one.toolCallId === toolCallId && awaitsAnswer(one));
  const fault = answerFault(call, answer);
  if (call !== undefined && isObject(answer) && fault === undefined) {
    if (call.for === 'approval') return [note(batchNotes.answered, { toolCallId, ...answer })];
    const { output, reason } = answer;
    const result =
      output === undefined ? denied(call, asText(reason)).draft : toolResult(call, plainOutput(output));
    return [{ ...result, meta: { run, paths: { read: [], write: [] } } }];
  }
  const message = `cannot answer call '${toolCallId}': ${fault}`;
  return [note('inbox/refused', { id, source, type: body.type, code: 'SESSION_NO_CALL', message })];
}

/** Does what arrived in the inbox between two steps, and takes in what is to steer this run. */
async function takeMessages(
  stage: Stage,
  context: LoopContext,
  { at, spec }: { at: 'step' | 'last'; spec: string | undefined },
): Promise<boolean> {
  const { hold } = stage;
  const inbox = await hold.inbox();
  if (inbox.length === 0) return false;
  const decision = decide(inbox, at, hold.lease.owner);
  if (decision.do === 'abort') stage.abort(decision.reason);
  const items = decision.do === 'steer' ? decision.items : [];
  await hold.drain(
    items.map((item) => ({ id: item.id, drafts: itemDrafts(item, { open: [], run: context.run, spec }) })),
  );
  if (items.length > 0) context.tell({ type: 'steered', messages: items.length });
  return items.length > 0;
}

function asText(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

async function summarizerOf(
  { store, config, env }: DeckParts,
  session: string,
): Promise<LanguageModel | undefined> {
  if (config.summarizer === undefined) return undefined;
  return (await resolveModel(config.summarizer, { env, store }))(session);
}

function endChunk(finish: Finish, message: string | undefined): Chunk {
  if (finish === 'aborted') return { type: 'abort' };
  if (finish === 'error') return { type: 'error', errorText: message ?? 'the run failed' };
  return { type: 'finish' };
}

const taskOf = {
  stop: 'completed',
  length: 'completed',
  halted: 'halted',
  waiting: 'running',
  aborted: 'aborted',
  error: 'failed',
} as const;

async function infoOf({ parts, session }: Stage): Promise<SessionInfo> {
  const info = await parts.store.find(session.id);
  if (info !== undefined) return info;
  throw new SessionError('SESSION_CLOSED', `cannot find '${session.name}': its row is gone`, {
    data: { session: session.name },
  });
}

/** Asked under the lease, so that nobody ends the task in between. */
async function needUnended({ name, task }: SessionInfo): Promise<void> {
  if (task === undefined || task === 'running') return;
  throw new SessionError('SESSION_ENDED', `cannot run '${name}' again: its task is ${task}`, {
    data: { session: name, task },
  });
}

async function markFailed(stage: Stage): Promise<void> {
  const { parts, session, hold } = stage;
  try {
    const { task } = await infoOf(stage);
    if (task === 'running') await parts.store.setTask(session.id, 'failed', { lease: hold.lease });
  } catch {
    // The store itself fails: the error that is on its way says so.
  }
}

/** Records that a run which its message was taken for could not begin: nothing of it is lost. */
export async function recordUnusable(stage: Stage, job: Job, error: unknown): Promise<RunResult> {
  const { parts, session, hold } = stage;
  const { head } = await infoOf(stage);
  const message = messageOf(error);
  const spec = await carriedOn(stage, job);
  const taken = (job.items ?? []).map((item) => ({
    id: item.id,
    drafts: itemDrafts(item, { open: [], run: job.run, spec }),
  }));
  await hold.drain(taken);
  await parts.store.append(session.id, [note('run/error', { run: job.run, message } satisfies Json)], {
    lease: hold.lease,
  });
  const failure =
    error instanceof SessionError
      ? error
      : new SessionError('SESSION_MODEL_FAILED', `cannot run '${session.name}': ${message}`, {
          cause: error,
        });
  const { head: to } = await infoOf(stage);
  return {
    run: job.run,
    session: session.name,
    text: '',
    finish: 'error',
    steps: 0,
    usage: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    from: head + 1,
    to,
    error: failure,
  };
}
