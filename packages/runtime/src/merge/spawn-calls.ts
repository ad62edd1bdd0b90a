import {
  type Draft,
  type InboxItem,
  isObject,
  type Json,
  type SessionInfo,
  type TapeStore,
  toolResult,
} from '@tapedeck/tape';
import type { OpenCall } from '../stream/call.ts';
import { awaitsAnswer, openBatch } from '../tools/open-batch.ts';
import { outcomeJson, resultOf } from './outcome.ts';

/** A task of a call that asks for children, and the child that was started for it: none when a crash came before. */
interface TaskOfCall {
  readonly task?: string;
  readonly child: SessionInfo | undefined;
}

/** Whether a child's task has come to an end; one that waits for somebody has not. */
export function isEnded({ task }: Pick<SessionInfo, 'task'>): boolean {
  return task !== undefined && task !== 'running';
}

/** Whether a call that is still open is to be answered with what a child comes to. */
export async function isAwaited(store: TapeStore, child: SessionInfo): Promise<boolean> {
  const parent = child.parentId === undefined ? undefined : await store.find(child.parentId);
  if (parent === undefined || parent.settled === parent.head) return false;
  for (const call of await openBatch(store, parent.id)) {
    const spawned = await spawnedBy(store, parent, call);
    if (spawned.some((one) => one.child?.id === child.id && waitsFor(call, one.child))) return true;
  }
  return false;
}

/** Whether the result of a call has told the parent what a child came to: its merge need not be shown. */
export async function isReportedToParent(store: TapeStore, child: SessionInfo): Promise<boolean> {
  if (child.parentId === undefined || child.spawnCall === undefined) return false;
  const { text, output } = outcomeJson(await outcomeOf(store, child));
  const same = (one: Json) =>
    isObject(one) &&
    one.session === child.name &&
    one.status !== 'running' &&
    JSON.stringify([one.text, one.output]) === JSON.stringify([text, output]);
  const results = store.read(child.parentId, { from: child.base + 1, kind: 'tool-result' });
  for await (const { payload } of results) {
    const value = isObject(payload) && isObject(payload.output) ? payload.output.value : undefined;
    if (isObject(value) && Array.isArray(value.results) && value.results.some(same)) return true;
  }
  return false;
}

/** Whether all children that a call waits for have ended, or wait for somebody themselves; true of a call that waits for none. */
export async function isAnswerable(store: TapeStore, parent: SessionInfo, call: OpenCall): Promise<boolean> {
  for (const { child } of await spawnedBy(store, parent, call)) {
    if (child === undefined || isEnded(child) || !waitsFor(call, child)) continue;
    if (!(await openBatch(store, child.id)).some(awaitsAnswer)) return false;
  }
  return true;
}

/** Whether a call asked for children of which not all were started. */
export async function isHalfSpawned(store: TapeStore, parent: SessionInfo, call: OpenCall): Promise<boolean> {
  const spawned = await spawnedBy(store, parent, call);
  return wasBegun(spawned) && spawned.some(({ child }) => child === undefined);
}

/** What an open call that asked for children is answered, where the process that waited for them is gone. */
export interface SpawnAnswer {
  readonly result: Draft;
  /** The children whose outcomes it tells: their merges are not to be shown. */
  readonly told: readonly SessionInfo[];
}

/**
 * Answers a call that asked for children with what those came to that have ended; of the others a merge will tell. Nothing
 * for a call that asked for none.
 */
export async function spawnAnswer(
  store: TapeStore,
  parent: SessionInfo,
  call: OpenCall,
): Promise<SpawnAnswer | undefined> {
  const spawned = await spawnedBy(store, parent, call);
  if (!wasBegun(spawned)) return undefined;
  const inbox = await store.inbox(parent.id);
  const results: Json[] = [];
  const told: SessionInfo[] = [];
  for (const { task, child } of spawned) {
    if (child === undefined) results.push({ task: task ?? '', status: 'not_started' });
    else if (!isEnded(child) || willBeShown(inbox, child))
      results.push({ session: child.name, status: child.task ?? 'running' });
    else {
      results.push(outcomeJson(await outcomeOf(store, child)));
      told.push(child);
    }
  }
  const waits = spawned.some(({ child }) => child !== undefined && waitsFor(call, child));
  const meta = { source: 'repair', paths: { read: [], write: [] } };
  const answer = (value: Json) => toolResult(call, { type: 'json', value }, meta);
  if (waits) return { result: answer({ results }), told };
  const started = spawned.flatMap(({ child }) => (child === undefined ? [] : [child.name]));
  const missing = spawned.flatMap(({ task, child }) => (child === undefined ? [task ?? ''] : []));
  return { result: answer({ started, ...(missing.length > 0 && { not_started: missing }) }), told: [] };
}

/** Whether a merge of a child waits that its parent's model will be shown. */
function willBeShown(inbox: readonly InboxItem[], { id, name }: SessionInfo): boolean {
  return inbox.some(
    ({ body }) =>
      body.type === 'merge' && [id, name].includes(body.draft.child) && body.draft.context !== false,
  );
}

function wasBegun(spawned: readonly TaskOfCall[]): boolean {
  return spawned.some(({ child }) => child !== undefined);
}

/** Whether a call was to be answered with what its children come to, and not at once. */
function waitsFor({ input }: OpenCall, { deliver }: SessionInfo): boolean {
  return tasksIn(input) === undefined
    ? deliver === 'tool-result'
    : isObject(input) && input.background !== true;
}

async function outcomeOf(store: TapeStore, info: SessionInfo) {
  return { session: info.name, status: info.task ?? 'completed', ...(await resultOf(store, info)) };
}

/**
 * The children of an open call, in the order of its tasks, in which they are forked too. A provider may use the id of a call
 * again: the children of an older call branch off before this one.
 */
async function spawnedBy(
  store: TapeStore,
  parent: SessionInfo,
  { toolCallId, input }: OpenCall,
): Promise<readonly TaskOfCall[]> {
  const children = await store.sessions({ parent: parent.id, all: true });
  const own = children.filter(({ spawnCall, base }) => spawnCall === toolCallId && base >= parent.settled);
  return tasksIn(input)?.map((task) => ({ task, child: own.shift() })) ?? own.map((child) => ({ child }));
}

/** The tasks of a call of `delegateTool`; nothing for one of another tool. */
function tasksIn(input: Json): readonly string[] | undefined {
  if (!isObject(input) || !Array.isArray(input.tasks)) return undefined;
  const tasks = input.tasks.map((one) => (isObject(one) ? one.task : undefined));
  return tasks.every((task) => typeof task === 'string') ? tasks : undefined;
}
