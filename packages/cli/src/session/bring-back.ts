import type { Lifecycle, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';

/**
 * Brings back a deleted session with its names, as it was before: active or archived. Prints the receipt.
 * @throws TAPE_EXISTS when something else has one of its names now
 */
export async function bringBack(
  store: SqliteTapeStore,
  { id }: SessionInfo,
  context: Context,
): Promise<number> {
  const lifecycle = lifecycleBefore(store, id);
  const { session } = store.sessions.update(id, { lifecycle });
  await context.answer({
    json: { session, id, lifecycle },
    quiet: session,
    human: context.inHome(`${session} is ${lifecycle} again (undo with: tape delete ${session})`),
  });
  return exit.done;
}

/** What a session was before it was deleted, as the lineage records. */
function lifecycleBefore(store: SqliteTapeStore, id: string): Lifecycle {
  let before: Lifecycle = 'active';
  for (const { lifecycle } of store.lineage.read({ session: id }))
    if (lifecycle === 'active' || lifecycle === 'archived') before = lifecycle;
  return before;
}
