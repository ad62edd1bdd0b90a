import { type Draft, type Json, type SessionInfo, type TapeStore, toolResult } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { InboxItem } from '@tapedeck/tape/store';
import type { OpenCall } from '../stream/call.ts';
import { taskKey, tasksIn } from '../stream/call-tasks.ts';
import { awaitsChildren, isPending, openBatch } from '../tools/open-batch.ts';
import { outcomeJson, resultOf } from './outcome.ts';

/** A task of a delegating call, and its child; undefined when a crash came before the fork. */
interface TaskOfCall {
  readonly task?: string;
  readonly child: SessionInfo | undefined;
}

/** Whether a child's task has ended. A child that waits for an answer has not. */
export function isEnded({ task }: Pick<SessionInfo, 'task'>): boolean {
  return task !== undefined && task !== 'running';
}

/** Whether a child has done what it was last given: its task, or the message with which it was resumed. */
export async function isDone(
  store: TapeStore,
  child: SessionInfo,
  message: { readonly key: string } | undefined,
): Promise<boolean> {
  return isEnded(child) && (message === undefined || (await hasTaken(store, child, message.key)));
}

/** Whether an open call of the parent waits for the outcome of a child. */
export async function isAwaited(store: TapeStore, child: SessionInfo): Promise<boolean> {
  const parent = child.parentId === undefined ? undefined : await store.sessions.find(child.parentId);
  if (parent === undefined || parent.settled === parent.head) return false;
  for (const call of await openBatch(store, parent.id)) {
    const spawned = await spawnedBy(store, parent, call);
    if (spawned.some((one) => one.child?.id === child.id && waitsFor(call, one.child))) return true;
  }
  return false;
}

/** Whether the result of a call already holds a child's outcome, so that its merge stays out of the view. */
export async function isReportedToParent(store: TapeStore, child: SessionInfo): Promise<boolean> {
  if (child.parentId === undefined || child.spawnCall === undefined) return false;
  const { text, output } = outcomeJson(await outcomeOf(store, child));
  const same = (one: Json) =>
    isObject(one) &&
    one.session === child.session &&
    one.status !== 'running' &&
    JSON.stringify([one.text, one.output]) === JSON.stringify([text, output]);
  const results = store.entries.read(child.parentId, { from: child.base + 1, kind: 'tool-result' });
  for await (const { payload } of results) {
    const value = isObject(payload) && isObject(payload.output) ? payload.output.value : undefined;
    if (isObject(value) && Array.isArray(value.results) && value.results.some(same)) return true;
  }
  return false;
}

/**
 * Whether all children that a call waits for have ended or wait for an answer. True for a call without
 * children.
 */
export async function isAnswerable(store: TapeStore, parent: SessionInfo, call: OpenCall): Promise<boolean> {
  for (const { child } of await spawnedBy(store, parent, call)) {
    if (child === undefined || isEnded(child) || !waitsFor(call, child)) continue;
    if (!(await isBlocked(store, child))) return false;
  }
  return true;
}

/**
 * Whether a call that waits for its children can go on: all of them have ended, or one can go on. A child cannot go on
 * that waits for an answer, or for children that cannot. True for a call without children.
 */
export async function canContinue(store: TapeStore, parent: SessionInfo, call: OpenCall): Promise<boolean> {
  const unended = (await spawnedBy(store, parent, call)).filter(({ child }) => !isOver(child));
  for (const { child } of unended) if (child === undefined || !(await isBlocked(store, child))) return true;
  return unended.length === 0;
}

/** Whether all children of a call have ended. */
export async function haveEnded(store: TapeStore, parent: SessionInfo, call: OpenCall): Promise<boolean> {
  return (await spawnedBy(store, parent, call)).every(({ child }) => isOver(child));
}

/** Whether a call has started a child that has not ended. */
export async function hasWaiting(store: TapeStore, parent: SessionInfo, call: OpenCall): Promise<boolean> {
  const spawned = await spawnedBy(store, parent, call);
  return spawned.some(({ child }) => child !== undefined && !isOver(child) && waitsFor(call, child));
}

function isOver(child: SessionInfo | undefined): boolean {
  return child !== undefined && (isEnded(child) || child.delivery === 'discarded');
}

/** Whether a session can do nothing before an answer comes, to a call of its own or of a session below it. */
export async function isBlocked(store: TapeStore, info: SessionInfo): Promise<boolean> {
  const open = await openBatch(store, info);
  if (info.openRun === true || !open.some(isPending)) return false;
  // An approved call whose tool is missing waits for another deck.
  if (open.some((call) => call.decision !== undefined && call.for === 'approval')) return false;
  const inbox = await store.inbox.list(info.id);
  if (inbox.some(({ body: { type } }) => type === 'answer' || type === 'input')) return false;
  for (const call of open) if (awaitsChildren(call) && (await canContinue(store, info, call))) return false;
  return !(await store.leases.list()).some(({ id }) => id === info.id);
}

/** Whether a delegating call has started some of its children, but not all. */
export async function isHalfSpawned(store: TapeStore, parent: SessionInfo, call: OpenCall): Promise<boolean> {
  const spawned = await spawnedBy(store, parent, call);
  return wasBegun(spawned) && spawned.some(({ child }) => child === undefined);
}

/** The result of a delegating call whose process is gone. */
export interface SpawnAnswer {
  readonly result: Draft;
  /** The children whose outcomes the result holds. Their merges stay out of the view. */
  readonly reported: readonly SessionInfo[];
}

/**
 * Answers a delegating call with the outcomes of its ended children; merges report the others later.
 * Undefined for a call without children.
 */
export async function spawnAnswer(
  store: TapeStore,
  parent: SessionInfo,
  call: OpenCall,
): Promise<SpawnAnswer | undefined> {
  const spawned = await spawnedBy(store, parent, call);
  if (!wasBegun(spawned)) return undefined;
  const inbox = await store.inbox.list(parent.id);
  const results: Json[] = [];
  const reported: SessionInfo[] = [];
  for (const { task, child } of spawned) {
    if (child === undefined) results.push({ task: task ?? '', status: 'not_started' });
    else if (!isEnded(child) || willBeShown(inbox, child))
      results.push({ session: child.session, status: child.task ?? 'running' });
    else {
      results.push(outcomeJson(await outcomeOf(store, child)));
      reported.push(child);
    }
  }
  const waits = spawned.some(({ child }) => child !== undefined && waitsFor(call, child));
  const meta = { source: 'repair', paths: { read: [], write: [] } };
  const answer = (value: Json) => toolResult(call, { type: 'json', value }, meta);
  if (waits) return { result: answer({ results }), reported };
  const started = spawned.flatMap(({ child }) => (child === undefined ? [] : [child.session]));
  const missing = spawned.flatMap(({ task, child }) => (child === undefined ? [task ?? ''] : []));
  return { result: answer({ started, ...(missing.length > 0 && { not_started: missing }) }), reported: [] };
}

/** Whether the inbox has a merge of a child that will be part of the view. */
function willBeShown(inbox: readonly InboxItem[], { id, session: name }: SessionInfo): boolean {
  return inbox.some(
    ({ body }) =>
      body.type === 'merge' && [id, name].includes(body.draft.child) && body.draft.context !== false,
  );
}

function wasBegun(spawned: readonly TaskOfCall[]): boolean {
  return spawned.some(({ child }) => child !== undefined);
}

/** Whether the result of a call holds the outcome of a child, instead of returning immediately. */
function waitsFor({ input }: OpenCall, { deliver }: SessionInfo): boolean {
  return tasksIn(input) === undefined
    ? deliver === 'tool-result'
    : isObject(input) && input.background !== true;
}

async function outcomeOf(store: TapeStore, info: SessionInfo) {
  return { session: info.session, status: info.task ?? 'completed', ...(await resultOf(store, info)) };
}

/**
 * The children of an open call, in the order of its tasks, which is also the order of the forks. A provider
 * can reuse a call id; children of an earlier call fork before the settled point.
 */
async function spawnedBy(
  store: TapeStore,
  parent: SessionInfo,
  { toolCallId, input }: OpenCall,
): Promise<readonly TaskOfCall[]> {
  const children = await store.sessions.list({ parent: parent.id, all: true });
  const own = children.filter(({ spawnCall, base }) => spawnCall === toolCallId && base >= parent.settled);
  const tasks = tasksIn(input);
  if (tasks === undefined) return own.map((child) => ({ child }));
  const found: TaskOfCall[] = [];
  for (const [i, { task, resume }] of tasks.entries()) {
    const resumed = children.find(({ id, session: name }) => resume === name || resume === id);
    const key = taskKey(parent, toolCallId, i);
    const child = resume === undefined ? own.shift() : resumed;
    const isTaken = resume === undefined || (child !== undefined && (await hasTaken(store, child, key)));
    found.push({ task, child: isTaken ? child : undefined });
  }
  return found;
}

/** Whether a resumed child has taken a task as its message. */
export async function hasTaken(
  store: TapeStore,
  { id }: Pick<SessionInfo, 'id'>,
  key: string,
): Promise<boolean> {
  for await (const { meta } of store.entries.read(id, { own: true, kind: 'message' }))
    if (meta.task_key === key) return true;
  return false;
}
