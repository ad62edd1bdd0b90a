import {
  anchor,
  assistant,
  type Draft,
  handoff,
  note,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { clientCalls, isObject } from '@tapedeck/tape/internal';
import type { Scene } from './world.ts';

/** The drafts of the acts that append. Each one's content is its own, so that it can be found again. */
export const appends: Readonly<Record<string, (scene: Scene) => readonly Draft[]>> = {
  append: ({ key }) => [user(key)],
  batch: ({ key }) => [user(`${key} asks`, { of: 2 }), assistant(`${key} answers`, { of: 2 })],
  call: ({ key }) => [assistant([toolCall(`${key}a`, 'read', {}), toolCall(`${key}b`, 'read', {})])],
  result: ({ store, session, key }) => results(store, session, key).slice(0, 1),
  results: ({ store, session, key }) => results(store, session, key),
  anchor: ({ key }) => [anchor('mark', { [key]: 1 })],
  handoff: ({ key }) => [handoff('turn', { summary: key })],
  note: ({ key }) => [note('step', { key })],
};

/** Results of all calls of a session that are open. */
export function results(store: SqliteTapeStore, session: string, key: string): Draft[] {
  const info = store.sessions.find(session);
  if (info === undefined || info.settled === info.head) return [];
  const since = [...store.entries.read(session, { from: info.settled + 1 })].map(({ payload }) => payload);
  const open = since.flatMap(clientCalls);
  for (const payload of since) {
    const id = isObject(payload) ? payload.toolCallId : undefined;
    const at = open.indexOf(String(id));
    if (at !== -1) open.splice(at, 1);
  }
  return open.map((toolCallId) => toolResult({ toolCallId, toolName: 'read' }, `${key} of ${toolCallId}`));
}
