import { assertActive, type SessionInfo, type TapeStore } from '@tapedeck/tape';

/**
 * The row of a session that is active. Asked under the lease, it stays so: a session that is written is not archived.
 * @param act what is refused of another: `run`
 * @throws TAPE_NO_SESSION, TAPE_ARCHIVED
 */
export async function getActive(store: TapeStore, ref: string, act: string): Promise<SessionInfo> {
  // Resolving, unlike finding, throws when there is no such session.
  await store.resolve(ref, 'head');
  const info = await store.find(ref);
  if (info === undefined) throw new TypeError('a session that resolves exists');
  assertActive(info, act);
  return info;
}
