import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { assertActive } from '@tapedeck/tape/internal';

/**
 * The row of a session that is not archived. Call it under the lease: a session with a writer cannot be
 * archived, so the result stays true.
 * @param act the verb of the error message, such as `run`
 * @throws TAPE_NO_SESSION, TAPE_ARCHIVED
 */
export async function getActive(store: TapeStore, ref: string, act: string): Promise<SessionInfo> {
  // `resolve`, unlike `find`, throws for an unknown session.
  await store.entries.resolve(ref, 'head');
  const info = await store.sessions.find(ref);
  if (info === undefined) throw new TypeError('a resolved session has no row');
  assertActive(info, act);
  return info;
}
