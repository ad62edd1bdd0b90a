import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { clientCalls, isObject, totalOf } from '@tapedeck/tape/internal';
import { type ChildProgress, progressText } from '../stream/events.ts';
import { childCallsOf, isUnanswered } from './child-calls.ts';
import type { Turn } from './turns.ts';

/** A session, by its ULID, and the store that its tape is in. */
export interface TurnPlace {
  readonly store: TapeStore;
  readonly session: string;
}

/** The children that the calls of a turn have started, in order. */
export async function childrenOf(
  { store, session }: TurnPlace,
  { entries }: Pick<Turn, 'entries'>,
): Promise<readonly SessionInfo[]> {
  const calls = new Set(entries.flatMap(({ payload }) => clientCalls(payload)));
  const [first] = entries;
  if (calls.size === 0 || first === undefined) return [];
  const children = await store.sessions.list({
    parent: session,
    leftFrom: first.seq - 1,
    all: true,
  });
  return children.filter(({ spawnCall }) => spawnCall !== undefined && calls.has(spawnCall));
}

/** The progress of a child as its tape has it. */
export async function progressOf(store: TapeStore, child: SessionInfo): Promise<ChildProgress> {
  const { session, spawnCall, task: status } = child;
  const calls = await store.sessions.calls({ session: child.id });
  const sum = (of: (call: (typeof calls)[number]) => number) =>
    calls.reduce((total, call) => total + of(call), 0);
  const task = await taskOf(store, child.id);
  const isEnded = status !== undefined && status !== 'running';
  const waiting = isEnded ? [] : (await childCallsOf(store, [child])).filter(isUnanswered);
  const { text } = isEnded ? await store.lineage.collect(child.id) : { text: '' };
  return {
    session,
    ...(task !== undefined && { task }),
    ...(spawnCall !== undefined && { toolCallId: spawnCall }),
    state: isEnded ? 'ended' : waiting.length > 0 ? 'waiting' : status === 'running' ? 'running' : 'started',
    steps: sum(({ steps }) => steps),
    tokens: sum(({ usage }) => totalOf(usage)),
    ...(waiting.length > 0 && { tool: waiting.map(({ toolName }) => toolName).join(', ') }),
    ...(isEnded && { status }),
    ...(text !== '' && { text: progressText(text) }),
  };
}

async function taskOf(store: TapeStore, id: string): Promise<string | undefined> {
  for await (const { payload } of store.entries.read(id, { own: true, kind: 'anchor', name: 'intention' })) {
    const state = isObject(payload) ? payload.state : undefined;
    if (isObject(state) && typeof state.next_steps === 'string') return state.next_steps;
  }
  return undefined;
}
