import type { Entry, Json, Part, SessionInfo, TapeStore } from '@tapedeck/tape';
import { clientCalls, isClientCall, isObject } from '@tapedeck/tape/internal';
import { taskKey, tasksIn } from '../stream/call-tasks.ts';
import type { Turn } from './turns.ts';

/** A session, by its ULID, and the store that its tape is in. */
export interface TurnPlace {
  readonly store: TapeStore;
  readonly session: string;
}

/** A child that a call has started or resumed. */
export interface StartedChild {
  readonly info: SessionInfo;
  readonly call?: string | undefined;
  /** The task and its key, of a child that was resumed with it. */
  readonly resumed?: { readonly task: string; readonly key: string };
  /** Whether the call waits, or waited, for its outcome. */
  readonly isAwaited: boolean;
}

/** A child as its fork says how it was started. */
export function spawned(info: SessionInfo): StartedChild {
  const { deliver, spawnCall } = info;
  return { info, call: spawnCall, isAwaited: deliver === 'tool-result' && spawnCall !== undefined };
}

/** The children that the calls of a turn have started or resumed, in order. */
export async function childrenOf(
  { store, session }: TurnPlace,
  { entries }: Pick<Turn, 'entries'>,
): Promise<readonly StartedChild[]> {
  const calls = new Set(entries.flatMap(({ payload }) => clientCalls(payload)));
  const [first] = entries;
  if (calls.size === 0 || first === undefined) return [];
  const children = await store.sessions.list({ parent: session, leftFrom: first.seq - 1, all: true });
  const started = children.filter(({ spawnCall }) => spawnCall !== undefined && calls.has(spawnCall));
  return [...started.map(spawned), ...(await resumedIn({ store, session }, entries))];
}

/** The children that calls have resumed: each has the task as its message, under the key that the call gave it. */
async function resumedIn(
  { store, session }: TurnPlace,
  entries: readonly Entry[],
): Promise<readonly StartedChild[]> {
  const found: StartedChild[] = [];
  for (const { seq, payload } of entries) {
    if (!isObject(payload) || payload.role !== 'assistant' || !Array.isArray(payload.content)) continue;
    const calls = (payload.content as unknown as readonly Part[]).filter(isClientCall);
    for (const { toolCallId, input = null } of calls) {
      const call = String(toolCallId);
      for (const [i, { task, resume }] of (tasksIn(input as Json) ?? []).entries()) {
        const info = resume === undefined ? undefined : await store.sessions.find(resume);
        if (info?.parentId !== session) continue;
        // What the call left open began with the entry of the call.
        const key = taskKey({ settled: seq - 1 }, call, i);
        const isAwaited = !(isObject(input) && input.background === true);
        found.push({ info, call, resumed: { task, key }, isAwaited });
      }
    }
  }
  return found;
}

/** The entries of a child since a call has started or resumed it, up to its next task. */
export async function entriesSince(
  store: TapeStore,
  { info, resumed }: Pick<StartedChild, 'info' | 'resumed'>,
): Promise<readonly Entry[]> {
  const own = await Array.fromAsync(store.entries.read(info.id, { own: true }));
  const keyOf = ({ kind, meta }: Entry) => (kind === 'message' ? meta.task_key : undefined);
  const from = resumed === undefined ? 0 : own.findIndex((entry) => keyOf(entry) === resumed.key);
  if (from === -1) return [];
  const next = own.findIndex((entry, i) => i > from && keyOf(entry) !== undefined);
  return own.slice(from, next === -1 ? undefined : next);
}
