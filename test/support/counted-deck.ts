import { writeFileSync } from 'node:fs';
import { type DeckOptions, openDeck } from '@tapedeck/runtime';
import { openPostgresStore } from '@tapedeck/tape/postgres';
import { tool } from 'ai';
import { z } from 'zod';
import { serverPlace } from './postgres.ts';
import { slowLink } from './slow-link.ts';
import { tempDir } from './temp-dir.ts';

const call = (id: string) => ({ id, name: 'echo', input: { id } });

/**
 * A deck on a server behind a link that counts, and can delay each trip. Without a model, its own calls a tool as often as
 * the prompt says: `once` or `thrice`.
 */
export async function countedDeck({
  model,
  delayMs = 0,
}: {
  readonly model?: DeckOptions['model'];
  readonly delayMs?: number;
} = {}) {
  const stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  const place = stack.use(await serverPlace());
  const link = stack.use(await slowLink(place.url, { delayMs }));
  // However long it takes, no heartbeat of a lease and no new connection falls into what is counted.
  const store = Object.assign(stack.use(await openPostgresStore(link.url, { connections: 1 })), {
    leaseMs: 3_600_000,
  });
  writeFileSync(
    dir.file('script.json'),
    JSON.stringify([
      { when: { text: 'once' }, toolCalls: [call('a')] },
      { when: { text: 'once' }, text: 'done' },
      { when: { text: 'thrice' }, toolCalls: [call('b')] },
      { when: { text: 'thrice' }, toolCalls: [call('c')] },
      { when: { text: 'thrice' }, toolCalls: [call('d')] },
      { when: { text: 'thrice' }, text: 'done' },
    ]),
  );
  const deck = stack.use(
    await openDeck({
      store,
      model: model ?? `script:${dir.file('script.json')}`,
      tools: {
        echo: tool({
          description: 'Returns a text.',
          inputSchema: z.object({ id: z.string() }),
          execute: async ({ id }) => id,
        }),
      },
    }),
  );
  const main = await deck.session('main');
  return {
    main,
    /** What an act took: round trips, and milliseconds. */
    async costOf(act: () => PromiseLike<unknown>) {
      const [before, began] = [link.trips, performance.now()];
      await act();
      return { trips: link.trips - before, ms: performance.now() - began };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
