import { type Lifecycle, type Ref, type SessionInfo, TapeError, type TapeStore } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';

/**
 * Brings back a deleted session with all of its names, as it was before: active or archived. One that is not deleted stays
 * as it is.
 * @throws TAPE_NO_SESSION; TAPE_ARCHIVED for one that was purged; TAPE_EXISTS when something else has one of its names now
 *
 * @example
 * ```ts
 * import { undeleteSession } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { id } = store.sessions.update('main', { lifecycle: 'destroyed' });
 * console.log(store.sessions.find('main')); // undefined
 * console.log((await undeleteSession(store, id)).lifecycle); // active
 * ```
 */
export async function undeleteSession(store: TapeStore, ref: Ref): Promise<SessionInfo> {
  const info = await store.sessions.find(ref);
  if (info === undefined)
    throw new TapeError('TAPE_NO_SESSION', `cannot bring back '${ref}': no session has this id`, {
      data: { session: ref, near: [] },
    });
  if (!isDeleted(info)) return info;
  return await store.sessions.update(info.id, { lifecycle: await lifecycleBefore(store, info.id) });
}

/** What a session was before it was deleted, as the lineage records. */
async function lifecycleBefore(store: TapeStore, id: string): Promise<Lifecycle> {
  let before: Lifecycle = 'active';
  for await (const { lifecycle } of store.lineage.read({ session: id }))
    if (lifecycle === 'active' || lifecycle === 'archived') before = lifecycle;
  return before;
}
