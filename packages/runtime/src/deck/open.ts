import type { Deck, DeckOptions, OpenOptions } from './deck.ts';

/**
 * Opens a tape home, or wraps a store, for running sessions. The first deck loads the modules that run sessions.
 * @throws SESSION_BAD_CONFIG before anything is opened, and the errors of `openTapeStore`
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 *
 * await using deck = await openDeck({ home: '.tape', model: 'script:answers.json' });
 * const main = await deck.session('main');
 * console.log((await main.run('Plan the release.')).text); // Test, tag, publish.
 * ```
 */
export async function openDeck(options: DeckOptions): Promise<Deck> {
  const { store, ...others } = options ?? {};
  if (!(store instanceof Promise)) {
    const { createDeck } = await import('./deck.ts');
    return await createDeck(options as OpenOptions);
  }
  // Awaited before all else, so that its rejection is that of the deck.
  const opened = await store;
  try {
    const { createDeck } = await import('./deck.ts');
    return await createDeck({ ...others, store: opened }, { closes: true });
  } catch (error) {
    await opened?.[Symbol.asyncDispose]?.();
    throw error;
  }
}
