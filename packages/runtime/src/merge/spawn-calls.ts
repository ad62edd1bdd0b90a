import { type Draft, type Json, type SessionInfo, type TapeStore, toolResult } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { InboxItem } from '@tapedeck/tape/store';
import type { OpenCall } from '../stream/call.ts';
import { awaitsAnswer, openBatch } from '../tools/open-batch.ts';
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
    if (!(await openBatch(store, child.id)).some(awaitsAnswer)) return false;
  }
  return true;
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
  return tasksIn(input)?.map((task) => ({ task, child: own.shift() })) ?? own.map((child) => ({ child }));
}

/** The tasks of a call of `delegateTool`; undefined for other tools. */
function tasksIn(input: Json): readonly string[] | undefined {
  if (!isObject(input) || !Array.isArray(input.tasks)) return undefined;
  const tasks = input.tasks.map((one) => (isObject(one) ? one.task : undefined));
  return tasks.every((task) => typeof task === 'string') ? tasks : undefined;
}
