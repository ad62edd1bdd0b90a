import type { Deck, Session } from '@tapedeck/runtime';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { entryLines, scriptedDeck } from '../support/scripted.ts';

/** What a tool does with its own session, and what it cannot do, in the words of the error. */
const waits: Readonly<
  Record<string, readonly [act: (own: Session, deck: Deck) => Promise<unknown>, string]>
> = {
  'its session': [async (own) => await own.idle(), "wait for 'main'"],
  'the deck': [async (_, deck) => await deck.idle(), 'wait for the deck'],
  'a delegation': [async (own) => await own.delegate('Look.'), "wait for the children of 'main'"],
  'the events of a delegation': [
    async (own) => await Array.fromAsync(own.delegate('Look.')),
    "wait for the children of 'main'",
  ],
  'a fork and its merge': [
    async (own) => await own.withFork({}, async (child) => await child.result('Done.')),
    "merge 'main-fork-",
  ],
  'a merge': [
    async (own) => {
      const child = await own.fork();
      await own.merge(child);
    },
    "merge into 'main'",
  ],
};

test.each(Object.entries(waits))('a tool that waits for %s is refused at once', async (_, [act, words]) => {
  const deck: { own?: Deck } = {};
  const wait = tool({
    inputSchema: z.object({}),
    execute: async (_input, { context }) => {
      if (deck.own === undefined) throw new Error('there is no deck');
      return await act((context as { session: Session }).session, deck.own);
    },
  });
  await using home = await scriptedDeck(
    [
      { when: { text: 'Look' }, text: 'Seen.' },
      { toolCalls: [{ name: 'wait', input: {} }] },
      { text: 'Refused.' },
    ],
    // Any wait would last longer than the test.
    { tools: { wait }, limits: { toolTimeoutMs: 600_000 } },
  );
  deck.own = home.deck;
  const main = await home.deck.session('main');
  expect(await main.run('Wait.')).toMatchObject({ finish: 'stop', text: 'Refused.' });
  const [result] = entryLines(home.store.entries.read('main', { kind: 'tool-result' }));
  expect(result).toContain(`cannot ${words}`);
  expect(result).toContain("the tool 'wait' is part of the run of 'main'");
  await home.deck.idle();
});

test('a tool may start work of its session and end, wait for other sessions, and give a time', async () => {
  const other: { session?: Session } = {};
  const start = tool({
    inputSchema: z.object({}),
    execute: async (_input, { context }) => {
      const own = (context as { session: Session }).session;
      const delegation = own.delegate('Look around.');
      const [child] = await delegation.forked;
      // It goes on after the tool has ended, and may wait then.
      void own.send('And then?').catch(() => {});
      await other.session?.idle();
      const late = await own.fork();
      await expect(late.finish({ waitMs: 1 })).rejects.toMatchObject({ code: 'SESSION_MERGE_WAITING' });
      return child ?? '';
    },
  });
  await using home = await scriptedDeck(
    [
      { when: { text: 'Look around' }, text: 'Seen.' },
      { toolCalls: [{ name: 'start', input: {} }] },
      { text: 'Started.' },
      { text: 'Done.' },
      { text: 'Done.' },
    ],
    { tools: { start } },
  );
  other.session = await home.deck.session('other');
  const main = await home.deck.session('main');
  expect(await main.run('Begin.')).toMatchObject({ finish: 'stop' });
  await home.deck.idle();
  expect(await home.deck.sessions({ parent: 'main' })).toMatchObject([
    { delivery: 'merged' },
    { delivery: 'merged' },
  ]);
});
