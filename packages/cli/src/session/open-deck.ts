import type { Deck } from '@tapedeck/runtime';
import type { SqliteTapeStore } from '@tapedeck/tape';
import type { LoadedConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';

/**
 * Opens a deck on the store of a home, in the working directory. Loads the runtime only when a verb needs it.
 */
export async function openDeckAt(
  config: LoadedConfig,
  store: SqliteTapeStore,
  { io, home }: Pick<Context, 'io' | 'home'>,
): Promise<Deck> {
  const { openDeck } = await import('@tapedeck/runtime');
  return await openDeck({ ...config, store, home: home.dir, env: io.env, cwd: io.cwd });
}
