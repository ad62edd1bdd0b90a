import type { Deck } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { commandLine } from '../escape.ts';
import { type ModelArgs, namedIn } from '../options/model.ts';
import { openDeckAt } from './open-deck.ts';

/**
 * Runs the parent of a merged child that was forked with `--deliver merge+turn`: the merge left a message in its
 * inbox. A process that runs the parent takes the message itself. Where this command cannot run the parent, the
 * message stays, and stderr says how to go on: the merge is done in any case.
 */
export async function giveTurn(
  store: HomeStore,
  child: string,
  { args, context }: { readonly args: ModelArgs; readonly context: Context },
): Promise<void> {
  const info = store.sessions.find(child);
  if (info === undefined || !isOwed(store, info)) return;
  const { io, status } = context;
  const { parent = '' } = info;
  try {
    const config = await deckConfig(args, context);
    await using deck = await openDeckAt(config, store, context);
    const session = await deck.session(parent);
    status(`Running ${parent} for the result of ${child}`);
    const { finish, error, to } = await session.run(undefined, { ...namedIn(args), signal: io.signal });
    await idleOrInterrupted(deck, io.signal);
    status(`${parent}@${to} ${finish}${error === undefined ? '' : `: ${error.message}`}`);
  } catch (error) {
    if ((error as { code?: unknown }).code === undefined) throw error;
    if (!isOwed(store, info)) return;
    status(`${parent} has a message about ${child} in its inbox: ${(error as Error).message}`);
    status(`Hint: run it with: ${commandLine('run', [parent])}`);
  }
}

/** Waits until nothing runs in a deck; an interrupt ends the wait, and closing the deck then ends the runs. */
export async function idleOrInterrupted(deck: Deck, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise: interrupted, resolve } = Promise.withResolvers<void>();
  const stop = () => resolve();
  signal.addEventListener('abort', stop, { once: true });
  await Promise.race([deck.idle(), interrupted]);
  signal.removeEventListener('abort', stop);
}

/** Whether the message of a merge waits for a run of the parent, and no process runs the parent. */
function isOwed(store: HomeStore, { id, parentId, deliver }: SessionInfo): boolean {
  if (deliver !== 'merge+turn' || parentId === undefined) return false;
  if (store.leases.list().some((lease) => lease.id === parentId)) return false;
  return store.inbox.list(parentId).some(({ key }) => key.startsWith(`notify:${id}:`));
}
