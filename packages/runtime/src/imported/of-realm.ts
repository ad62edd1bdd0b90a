import type { HomeStore, SessionInfo } from '@tapedeck/tape';

/** Whether a store finds a session by its name, and what is forked from it. Pure. */
export function isOfRealm({ base }: Pick<HomeStore, 'base'>, { tape }: Pick<SessionInfo, 'tape'>): boolean {
  return tape.startsWith(`${base}:`);
}

/** The session with an id that another program has kept, such as in an export, where it is here and of the realm of the store. */
export function sessionWithId(store: HomeStore, id: string | undefined): SessionInfo | undefined {
  const found = id === undefined ? undefined : store.sessions.find(id);
  // A name is no id, whatever it looks like.
  return found !== undefined && found.id === id && isOfRealm(store, found) ? found : undefined;
}
