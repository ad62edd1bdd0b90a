import { join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { type Deck, type DeckOptions, openDeck as openRuntimeDeck } from '@tapedeck/runtime';
import { openTapeStore, type SqliteTapeStore, type TapeStore } from '@tapedeck/tape';
import { laterStore } from './later-store.ts';

/** The store on which functions of the runtime are tested: with `later`, one that answers everything later. */
export function storeUnderTest(store: SqliteTapeStore): TapeStore {
  return process.env.TAPEDECK_STORE === 'later' ? laterStore(store) : store;
}

/**
 * Opens a deck as the runtime does, on the sort of store that `TAPEDECK_STORE` names: with `later`, one that answers
 * everything later. Tests read the store itself, so its acts are done when they read.
 */
export async function openDeck(given: DeckOptions): Promise<Deck> {
  // Keys of the environment would let models run that a test expects to be refused.
  const options: DeckOptions = { env: {}, ...given };
  const { home, store } = options;
  if (process.env.TAPEDECK_STORE !== 'later') return await openRuntimeDeck(options);
  if (store !== undefined) return await openRuntimeDeck({ ...options, store: laterStore(await store) });
  if (home === undefined) return await openRuntimeDeck(options);
  const own = openTapeStore(join(home, 'tape.db'), {
    journal: openJournal(join(home, 'session_graph.jsonl')),
    lockWaitMs: 0,
  });
  const deck = await openRuntimeDeck({ ...options, store: laterStore(own) });
  return {
    ...deck,
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      own.close();
    },
  };
}
