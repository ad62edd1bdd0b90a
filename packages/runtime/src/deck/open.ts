import type { Deck, DeckOptions } from './deck.ts';

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
  const { createDeck } = await import('./deck.ts');
  return await createDeck(options);
}
