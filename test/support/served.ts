import { type Deck, type DeckOptions, openDeck, type Session } from '@tapedeck/runtime';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { type ChatAnswer, type ChatRequest, type Provider, startProvider } from './provider.ts';
import { entryLines } from './scripted.ts';
import { openStore } from './store.ts';

/** A session `main` in memory, whose model is a strict server. */
export interface Served extends AsyncDisposable {
  readonly provider: Provider;
  readonly store: SqliteTapeStore;
  readonly deck: Deck;
  readonly main: Session;
  /** The entries of `main`, without the first. */
  readonly lines: () => string[];
}

/** Starts a server with this answer, and a deck that calls it. */
export async function served(
  answer: (request: ChatRequest, index: number) => ChatAnswer | Promise<ChatAnswer>,
  options: Omit<DeckOptions, 'home' | 'store' | 'env'> = {},
): Promise<Served> {
  const provider = await startProvider(answer);
  const store = openStore();
  const deck = await openDeck({
    model: 'openai-compatible/test-model',
    ...options,
    store,
    env: provider.env,
  });
  return {
    provider,
    store,
    deck,
    main: await deck.session('main'),
    lines: () => entryLines(store.entries.read('main')).slice(1),
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      const problems = [...store.verify()];
      store.close();
      if (problems.length > 0) throw new Error(`verification found: ${JSON.stringify(problems)}`);
      await provider[Symbol.asyncDispose]();
    },
  };
}
