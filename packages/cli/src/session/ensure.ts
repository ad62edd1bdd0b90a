import type { HomeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { findMeant } from '../reference.ts';
import { userOf } from '../user.ts';
import { refOf } from './identity.ts';

/** Creates the session if it does not exist, and prints that on stderr. Returns its name, or its id where it is of another realm. */
export function ensure(store: HomeStore, name: string, { status }: Context): string {
  const found = findMeant(store, name, { creates: true });
  if (found !== undefined) {
    userOf(store)?.uses(found.id);
    return refOf(store, found);
  }
  const info = store.sessions.open(name);
  userOf(store)?.uses(info.id);
  if (info.created) status(`Created session ${info.session}`);
  return info.session;
}
