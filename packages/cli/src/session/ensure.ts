import type { SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';

/** Creates the session if it does not exist, and prints that on stderr. Returns its name. */
export function ensure(store: SqliteTapeStore, name: string, { status }: Context): string {
  const found = store.sessions.find(name);
  if (found !== undefined) return found.session;
  const info = store.sessions.open(name);
  if (info.created) status(`Created session ${info.session}`);
  return info.session;
}
