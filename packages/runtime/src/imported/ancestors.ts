import type { HomeStore } from '@tapedeck/tape';

/** The ids of a session, and of those that it was forked from, the nearest first. */
export function withAncestors(store: HomeStore, id: string | undefined): readonly string[] {
  const ids: string[] = [];
  for (let at = id; at !== undefined && !ids.includes(at); at = store.sessions.find(at)?.parentId)
    ids.push(at);
  return ids;
}
