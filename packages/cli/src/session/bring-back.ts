import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { commandLine } from '../escape.ts';
import { exit } from '../exit.ts';

/**
 * Brings back a deleted session with its names, as it was before: active or archived. Prints the receipt.
 * @throws TAPE_EXISTS when something else has one of its names now
 */
export async function bringBack(store: HomeStore, { id }: SessionInfo, context: Context): Promise<number> {
  const { undeleteSession } = await import('@tapedeck/runtime');
  const { session, aliases, lifecycle } = await undeleteSession(store, id);
  await context.answer({
    json: { session, id, lifecycle, names: [session, ...aliases] },
    quiet: session,
    human: context.inHome(
      `${session} is ${lifecycle} again (undo with: ${commandLine('delete', [session])})`,
    ),
  });
  return exit.done;
}
