import type { DeckTools } from '@tapedeck/runtime';
import { type Draft, type Entry, openTapeStore } from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { startProvider } from '../support/provider.ts';
import { type Death, faultsAfterRun, nextAnswer, runWorker } from '../support/run-crash.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempHome } from '../support/temp-home.ts';

/** One after another, on one tape: it bears the marks of all of them. */
const deaths: readonly Death[] = [
  { point: 'stream/saved', nth: 1 },
  { point: 'call/ran', nth: 1 },
  { point: 'call/approved', nth: 1 },
  { point: 'answer/arrived', nth: 2 },
  { point: 'stream/saved', nth: 4 },
  { point: 'inbox/handled', nth: 1 },
];

const inputSchema = z.object({});
const tools: DeckTools = {
  write: tool({ inputSchema, execute: async () => 'written' }),
  read: { ...tool({ inputSchema, execute: async () => 'read' }), safeToRepeat: true },
  pay: tool({ inputSchema, needsApproval: true, execute: async () => 'paid' }),
  fail: tool({ inputSchema, execute: async () => 'not this time' }),
};

const draftOf = ({ kind, mark, name, ref, payload, meta }: Entry): Draft => ({
  kind,
  payload,
  meta,
  ...(mark !== undefined && { mark }),
  ...(name !== undefined && { name }),
  ...(ref !== undefined && { ref }),
});

test('a tape cut after any entry continues as a session and as a fork, and no provider refuses it', {
  timeout: 180_000,
}, async () => {
  using home = tempHome();
  {
    // Slow enough that each answer is saved in parts, also on a busy machine: an answer that arrives at once never is.
    await using provider = await startProvider((request) => ({ ...nextAnswer(request), pauseMs: 15 }));
    const order = { url: provider.url };
    for (const dieAt of deaths) await runWorker([home], { ...order, dieAt });
    await runWorker([home], order);
    expect(faultsAfterRun(home)).toEqual([]);
    expect(provider.refusals).toEqual([]);
  }
  using scarred = openTapeStore(home.db, { readonly: true });
  const entries = [...scarred.entries.read('main')];
  const marks = entries.map(
    ({ name, meta }) => name ?? meta.source ?? (meta.partial === true ? 'partial' : ''),
  );
  expect(marks).toEqual(expect.arrayContaining(['run/interrupted', 'repair', 'partial', 'call/answered']));

  await using provider = await startProvider(() => ({ text: 'Fine.' }));
  using store = openStore();
  store.sessions.open('whole');
  store.entries.append('whole', entries.slice(1).map(draftOf));
  await using deck = await openDeck({
    store,
    tools,
    model: 'openai-compatible/test-model',
    env: provider.env,
  });
  const cuts = entries.map((_, i) => i + 1).filter((length) => length > 1 && length % sized(8, 6, 1) === 0);
  for (const length of cuts) {
    const where = `cut after @${length}`;
    store.sessions.open(`cut-${length}`);
    store.entries.append(`cut-${length}`, entries.slice(1, length).map(draftOf));
    const cut = await deck.session(`cut-${length}`);
    expect(await cut.run('Go on.'), where).toMatchObject({ finish: 'stop', text: 'Fine.' });
    store.lineage.fork('whole', { cut: length, name: `fork-${length}` });
    const fork = await deck.session(`fork-${length}`);
    expect(await fork.run('Go on.'), where).toMatchObject({ finish: 'stop', text: 'Fine.' });
    for (const session of [cut, fork]) {
      const info = await session.info();
      expect([info.settled, await session.status()], where).toMatchObject([
        info.head,
        { state: 'idle', waiting: [] },
      ]);
    }
    expect(provider.refusals, where).toEqual([]);
  }
  expect(provider.requests.length).toBe(2 * cuts.length);
  expect([...store.verify()]).toEqual([]);
});
