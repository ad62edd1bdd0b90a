import type { HomeStore } from '@tapedeck/tape';

/** Number of sessions, and of anchors, that are offered. */
const offeredMax = 100;

/** Sessions with names and aliases that begin with a text: the newest ones for an empty text. */
export function offeredSessions(store: HomeStore, text: string): readonly string[] {
  const found = store.sessions.list(
    text === '' ? { limit: offeredMax } : { prefix: text, all: true, limit: offeredMax },
  );
  return found.flatMap(({ session, aliases }) => [session, ...(text === '' ? [] : aliases)]);
}

/** The points of a session that have names: its head and its anchors. */
export function offeredPoints(store: HomeStore, id: string): readonly string[] {
  const anchors = [...store.entries.read(id, { kind: 'anchor', last: offeredMax })];
  return ['head', ...new Set(anchors.flatMap(({ name }) => name ?? []))];
}
