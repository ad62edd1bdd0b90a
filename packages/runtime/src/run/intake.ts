import {
  type Draft,
  type Json,
  type JsonObject,
  type Meta,
  note,
  type SessionInfo,
  toolResult,
  user,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { HandledItem, InboxItem } from '@tapedeck/tape/store';
import { callOnMessage, type HookedDrafts } from '../config/hooks.ts';
import { answerSpawns } from '../merge/answer-spawns.ts';
import { callSettingsIn, mergeSettings, settingsMeta } from '../model/call-settings.ts';
import type { CallName, OpenCall } from '../stream/call.ts';
import { type Chunk, decisionChunk } from '../stream/chunks.ts';
import type { NamedModel } from '../terms/model-for.ts';
import { grantNotes } from '../terms/permit-notes.ts';
import { sendersIn } from '../terms/senders.ts';
import { originOf } from '../terms/terms.ts';
import { denied, plainOutput } from '../tools/execute.ts';
import { answerFault, awaitsAnswer, awaitsChildren, batchNotes, openBatch } from '../tools/open-batch.ts';
import { superseded } from '../tools/orphans.ts';
import type { LoopContext } from '../turn/context.ts';
import { addedChunk } from '../ui/chat-chunks.ts';
import type { Stamp } from './place.ts';
import { decide } from './queue.ts';
import { infoOf, type RunRequest, type RunScope } from './request.ts';

/** What happened when a run took up its input. */
interface Begun {
  /** Warnings of hooks. */
  readonly warnings: readonly string[];
  /** The decisions on calls that waited for approval, for the watchers of the run. */
  readonly decisions: readonly Chunk[];
  /** The pending calls that the input has answered. */
  readonly superseded: readonly CallName[];
  /** The calls that waited for children, and got what has come of these so far. */
  readonly parted: readonly CallName[];
}

/** Appends the input or inbox items that a run begins with. New input answers pending calls as superseded. */
export async function begin(
  scope: RunScope,
  { input, items = [], run, options, inboxIsEmpty }: RunRequest,
  {
    context,
    named,
    stamp,
    before: info,
  }: { context: LoopContext; named: NamedModel; stamp: Stamp; before: SessionInfo },
): Promise<Begun> {
  const { hold, parts } = scope;
  let open = (await openBatch(parts.store, info)).filter(({ state }) => state !== 'begun');
  const isInput = input !== undefined || items.some(({ body }) => body.type === 'input');
  // New input does not wait for children: their call gets what has come of them.
  const parted = isInput ? open.filter(awaitsChildren).map(callName) : [];
  if (parted.length > 0) {
    await answerSpawns(parts.store, info.id, { hold, all: true });
    open = open.filter((call) => !awaitsChildren(call));
  }
  const before = isInput ? superseded(open) : [];
  const answered = isInput ? open.map(callName) : [];
  if (input !== undefined) {
    await hold.drain();
    const meta = { run, source: 'user', ...options.meta, ...namedMeta(named) };
    const { drafts, warnings } = await withHooks(scope, context, [user(input, meta)]);
    await context.append([...before, ...drafts]);
    return { warnings, decisions: [], superseded: answered, parted };
  }
  const warnings: string[] = [];
  const decisions: Chunk[] = [];
  const handled: HandledItem[] = [];
  for (const [i, item] of items.entries()) {
    const hooked = await withHooks(scope, context, itemDrafts(item, { open, run, named }), item.source);
    warnings.push(...hooked.warnings);
    decisions.push(...hooked.drafts.flatMap(decisionOf));
    handled.push({
      id: item.id,
      drafts: stamp(i === 0 ? [...before, ...hooked.drafts] : hooked.drafts),
    });
  }
  // Merges that wait must reach the tape before the model call.
  if (handled.length > 0 || inboxIsEmpty !== true) await hold.drain(handled);
  return { warnings, decisions, superseded: answered, parted };
}

function callName({ toolCallId, toolName: name }: OpenCall): CallName {
  return { toolCallId, name };
}

function decisionOf({ name, payload }: Draft): readonly Chunk[] {
  return name === batchNotes.answered && isObject(payload) ? [decisionChunk(payload)] : [];
}

/** The model and the settings that a message records, for the next runs. */
function namedMeta({ spec, settings }: NamedModel): Meta {
  return { ...(spec !== undefined && { model: spec }), ...settingsMeta(settings) };
}

/** Passes drafts through the deck's hooks before they are appended. */
async function withHooks(
  { parts, session }: RunScope,
  { limits, signal }: LoopContext,
  drafts: readonly Draft[],
  source?: string,
): Promise<HookedDrafts> {
  const { hooks } = parts.config;
  return await callOnMessage(hooks, drafts, {
    session: session.name,
    signal,
    graceMs: limits.abortGraceMs,
    source,
  });
}

/** What the entries of an inbox item are made of. */
export type ToDraft = Pick<InboxItem, 'body' | 'id' | 'source' | 'elsewhere'>;

/** The entries of an inbox item. An answer that no call waits for becomes `inbox/refused`. */
export function itemDrafts(
  { body, id, source, elsewhere }: ToDraft,
  { open, run, named }: { open: readonly OpenCall[]; run: string; named?: NamedModel },
): readonly Draft[] {
  if (body.type === 'input' && named !== undefined)
    return body.drafts.map(({ meta, ...draft }) => {
      // A message can name a part of the settings; the others are those of the run.
      const settings = settingsMeta(mergeSettings(named.settings, callSettingsIn(meta?.settings)));
      return { ...draft, meta: { run, ...namedMeta(named), ...meta, ...settings } };
    });
  if (body.type !== 'answer') return [];
  const { toolCallId, answer } = body;
  const call = open.find((one) => one.toolCallId === toolCallId && awaitsAnswer(one));
  const isForeign = elsewhere === true && isObject(answer) && answer.approved === true;
  const fault = isForeign ? 'it was approved in another home' : answerFault(call, answer);
  if (call !== undefined && isObject(answer) && fault === undefined) {
    if (call.for === 'approval')
      return [note(batchNotes.answered, { toolCallId, ...answer }), ...grantsIn(call, answer)];
    const { output, error, reason } = answer;
    const result =
      output !== undefined
        ? toolResult(call, plainOutput(output))
        : typeof error === 'string'
          ? toolResult(call, { type: 'error-text', value: error })
          : denied(call, asText(reason)).draft;
    return [{ ...result, meta: { run, paths: { read: [], write: [] } } }];
  }
  const message = `cannot answer call '${toolCallId}': ${fault}`;
  return [note(refusedNote, { id, source, type: body.type, code: 'SESSION_NO_CALL', message })];
}

const refusedNote = 'inbox/refused';

/** Whether a draft notes that an answer was refused. */
export function isRefusedAnswer({ name }: Draft): boolean {
  return name === refusedNote;
}

/**
 * Handles the inbox between two steps: performs aborts and merges, and appends steering messages. True
 * when it appended any.
 */
export async function takeMessages(
  scope: RunScope,
  context: LoopContext,
  { at, named }: { at: 'step' | 'last'; named: NamedModel },
): Promise<boolean> {
  const { hold } = scope;
  const inbox = await hold.inbox();
  if (inbox.length === 0) return false;
  const decision = decide(inbox, at, hold.lease.owner);
  if (decision.do === 'abort') scope.abort(decision.reason);
  const items = decision.do === 'steer' ? decision.items : [];
  const handled: HandledItem[] = [];
  for (const item of items) {
    const drafts = itemDrafts(item, { open: [], run: context.run, named });
    const hooked = await withHooks(scope, context, drafts, item.source);
    for (const message of hooked.warnings) context.emitEvent({ type: 'warning', message });
    handled.push({ id: item.id, drafts: hooked.drafts });
  }
  const { head } = await infoOf(scope);
  for (const sender of sendersIn(items)) await context.permits.addSender(sender);
  await hold.drain(handled, { later: await mergesForLater(context, inbox) });
  // A report after the last step is a message of its own, unless a message adds a step.
  if (at === 'step' || items.length > 0)
    for await (const entry of context.store.entries.read(context.session, {
      from: head + 1,
      kind: 'message',
    }))
      if (entry.meta.context !== false) context.emit(addedChunk(entry));
  if (items.length > 0) context.emitEvent({ type: 'steered', messages: items.length });
  return items.length > 0;
}

/** The merges that wait until the run ends: of children that this run did not start. */
async function mergesForLater({ store, run }: LoopContext, inbox: readonly InboxItem[]): Promise<string[]> {
  const later: string[] = [];
  for (const { id, body } of inbox) {
    if (body.type !== 'merge' || body.draft.at === 'step') continue;
    const child = body.draft.at === 'idle' ? undefined : await store.sessions.find(body.draft.child);
    const startedBy = child === undefined ? undefined : (await originOf(store, child)).terms.run;
    if (startedBy !== run) later.push(id);
  }
  return later;
}

/** The notes about an answer that counts for good. */
function grantsIn({ toolCallId }: OpenCall, { approved, remember }: JsonObject): readonly Draft[] {
  const patterns = Array.isArray(remember) ? remember.filter((one) => typeof one === 'string') : [];
  return grantNotes(toolCallId, { approved: approved === true, remember: patterns });
}

function asText(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
