import type { TapeStore } from '@tapedeck/tape';
import { isObject, totalOf } from '@tapedeck/tape/internal';
import { type ChildProgress, progressText } from '../stream/events.ts';
import { childCallsOf, isUnanswered } from './child-calls.ts';
import type { StartedChild } from './started.ts';

/** The progress of a child as its tape has it. */
export async function progressOf(store: TapeStore, child: StartedChild): Promise<ChildProgress> {
  const { info, call: toolCallId, resumed } = child;
  const { session, task: status } = info;
  const calls = await store.sessions.calls({ session: info.id });
  const sum = (of: (call: (typeof calls)[number]) => number) =>
    calls.reduce((total, call) => total + of(call), 0);
  const task = resumed?.task ?? (await taskOf(store, info.id));
  const isEnded = status !== undefined && status !== 'running';
  const waiting = isEnded ? [] : (await childCallsOf(store, [child])).filter(isUnanswered);
  const { text } = isEnded ? await store.lineage.collect(info.id) : { text: '' };
  return {
    session,
    ...(task !== undefined && { task }),
    ...(toolCallId !== undefined && { toolCallId }),
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
