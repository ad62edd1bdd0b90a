import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { scriptedDeck } from '../support/scripted.ts';

const look = tool({ inputSchema: z.strictObject({}), execute: async () => 'seen' });

test('a root keeps the instructions, the model and the tools that it was created with', async () => {
  const seen: string[] = [];
  await using home = await scriptedDeck(
    [
      { toolCalls: [{ name: 'pay', input: {}, id: 'p1' }], when: { session: 'main' } },
      { text: 'Done.', when: { session: 'main' } },
    ],
    { tools: { look, pay: look }, instructions: 'Those of the deck.' },
  );
  const main = await home.deck.session('main', {
    instructions: 'Be brief.',
    tools: ['look'],
    model: 'script:m.json',
  });
  const [start] = home.store.entries.read('main', { to: 1 });
  expect(start?.payload).toEqual({
    state: {},
    settings: { instructions: 'Be brief.', model: 'script:m.json', tools: ['look'] },
  });
  expect((await main.instructions()).text).toBe('Be brief.');
  await main.run('Go', { model: home.spec });
  const [result] = home.store.entries.read('main', { kind: 'tool-result' });
  expect(JSON.stringify(result?.payload)).toMatch(/may not be used in this session/);
  // A session that exists keeps what it has.
  const again = await home.deck.session('main', { instructions: 'Be long.' });
  expect((await again.instructions()).text).toBe('Be brief.');
  expect(seen).toEqual([]);
});

test('what a root keeps holds below it, unless a child has its own', async () => {
  await using home = await scriptedDeck([], {
    instructions: 'Those of the deck.',
    tools: { look, pay: look },
  });
  const main = await home.deck.session('main', { instructions: 'Be brief.', model: 'script:m.json' });
  const child = await main.fork({ name: 'child', onUnmerged: 'keep' });
  expect((await child.instructions()).text).toBe('Be brief.');
  const own = await main.fork({ name: 'own', instructions: 'Mine.', onUnmerged: 'keep' });
  expect((await own.instructions()).text).toBe('Mine.');
  const below = await child.fork({ name: 'below', onUnmerged: 'keep' });
  expect((await below.instructions()).text).toBe('Be brief.');
  const { carriedModel } = await import('@tapedeck/runtime/internal');
  for (const name of ['main', 'child', 'below'])
    expect(await carriedModel(home.store, name)).toBe('script:m.json');
  const other = await home.deck.session('other');
  expect((await other.instructions()).text).toBe('Those of the deck.');
  const bad = { code: 'SESSION_BAD_INPUT' };
  await expect(home.deck.session('bad', { instructions: 1 as never })).rejects.toMatchObject(bad);
  await expect(home.deck.session('bad', { tools: 'look' as never })).rejects.toMatchObject(bad);
  expect(home.store.sessions.find('bad')).toBeUndefined();
});

test('a deck opens the session of an alias, and creates none beside it', async () => {
  await using home = await scriptedDeck([]);
  const { id } = await home.deck.session('main');
  home.store.sessions.update('main', { alias: { name: 'release', reason: '' } });
  for (const name of ['release', id, `worker:${id}`])
    expect((await home.deck.session(name)).name).toBe('main');
  await expect(home.deck.session('worker:01JD0000000000000000000099')).rejects.toMatchObject({
    code: 'TAPE_BAD_NAME',
  });
  expect(await home.deck.sessions()).toHaveLength(1);
});
