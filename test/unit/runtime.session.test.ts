import { setTimeout as sleep } from 'node:timers/promises';
import { type SqliteTapeStore, TapeError, user } from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { fixedClock } from '../support/clock.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

test('anchors and handoffs tell where they stand, and a handoff begins the view anew', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [user('Long ago')]);
  expect(await main.anchor('plan', { goal: 'release' })).toEqual({ session: 'main', seq: 3, name: 'plan' });
  expect((await main.view()).messages).toHaveLength(1);
  const handed = await main.handoff('next', { summary: 'All is planned.', state: { left: 2 } });
  expect(handed).toEqual({ session: 'main', seq: 4, name: 'next' });
  const shown = JSON.stringify((await main.view()).messages);
  expect(shown).toContain('All is planned.');
  expect(shown).not.toContain('Long ago');
  expect(entryLines(await Array.fromAsync(main.entries({ from: 3 })))).toEqual([
    'anchor plan',
    'anchor next',
  ]);
});

test('what waits in the inbox when a run begins comes before its input', async () => {
  const clock = fixedClock();
  const store = openStore(':memory:', { now: clock.now });
  await using home = await scriptedDeck([{ text: 'Well.' }], { store });
  const main = await home.deck.session('main');
  store.leases.acquire('main', { id: 'somebody' });
  store.inbox.post('main', { body: { type: 'append', drafts: [user('First.')] } });
  // Whoever was to take it in is gone.
  clock.advance(60_000);
  await main.run('Second.');
  expect(entryLines(store.entries.read('main')).slice(1)).toEqual([
    'user: First.',
    'user: Second.',
    'assistant: Well.',
  ]);
});

/** A store whose disk is full from its nth append on. */
function filling(store: SqliteTapeStore, after: number): SqliteTapeStore {
  let appends = 0;
  const append = store.append.bind(store);
  store.append = (...args) => {
    appends += 1;
    if (appends > after) throw new TapeError('TAPE_IO', 'cannot use the database file: it is full');
    return append(...args);
  };
  return store;
}

test('a child whose answer cannot be recorded has failed, and its run says why', async () => {
  await using home = await scriptedDeck([{ text: 'Well.' }], { store: filling(openStore(), 1) });
  const main = await home.deck.session('main');
  const child = await main.fork({ name: 'child' });
  await expect(child.run('Go')).rejects.toMatchObject({ code: 'TAPE_IO' });
  expect(home.store.sessions.find('child')).toMatchObject({ task: 'failed' });
  expect(entryLines(home.store.entries.read('child', { own: true })).at(-1)).toBe('user: Go');
  // Nobody holds it.
  expect(home.store.leases.acquire('child', { id: 'next' })).toMatchObject({ owner: 'next' });
});

test('a session whose disk was full for a while can be run as soon as it has room', async () => {
  const store = openStore();
  await using home = await scriptedDeck([{ text: 'Well.' }], { store });
  const main = await home.deck.session('main');
  const { append, release } = store;
  const fail = () => {
    throw new TapeError('TAPE_IO', 'cannot use the database file: it is full');
  };
  Object.assign(store, { append: fail, release: fail });
  for (const text of ['One?', 'Two?', 'Three?'])
    await expect(main.run(text)).rejects.toMatchObject({ code: 'TAPE_IO' });
  Object.assign(store, { append, release });
  expect(await main.run('Four?')).toMatchObject({ finish: 'stop', text: 'Well.' });
  expect(store.leases.list()).toEqual([]);
});

test('an answer that was recorded before its pieces were saved has none that are saved', async () => {
  const store = openStore();
  const saved: number[] = [];
  const { saveChunks } = store;
  Object.assign(store, {
    saveChunks: (streams: readonly unknown[]) => {
      saved.push(streams.length);
      saveChunks.call(store, streams as never);
    },
  });
  const wait = tool({ inputSchema: z.object({}), execute: async () => await sleep(60, 'waited') });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'wait', input: {}, id: 'c1' }] }, { text: 'Well.' }],
    { store, tools: { wait } },
  );
  expect(await (await home.deck.session('main')).run('Wait')).toMatchObject({ finish: 'stop' });
  expect(saved.filter((streams) => streams === 0)).toEqual([]);
});

test('a child that cannot be run for want of a summarizer’s key is not at its task', async () => {
  await using home = await scriptedDeck([{ text: 'Well.' }], { summarizer: 'openai-compatible/small' });
  const child = await (await home.deck.session('main')).fork({ name: 'child' });
  const before = home.store.sessions.find('child');
  await expect(child.run('Go')).rejects.toMatchObject({ code: 'SESSION_NO_KEY' });
  expect(home.store.sessions.find('child')).toEqual(before);
});

test('what several children leave for a busy parent all arrives, each once', async () => {
  const store = openStore(':memory:', { now: fixedClock().now });
  await using home = await scriptedDeck([{ text: 'Well.' }], { store });
  const main = await home.deck.session('main');
  const children = [await main.fork({ name: 'a' }), await main.fork({ name: 'b' })];
  for (const child of children) await child.run('Go');
  const lease = store.leases.acquire('main', { id: 'somebody' });
  for (const child of children)
    await expect(child.finish({ waitMs: 0 })).rejects.toMatchObject({ code: 'SESSION_MERGE_WAITING' });
  expect(store.inbox.list('main')).toHaveLength(2);
  const finished = Promise.all(children.map((child) => child.finish()));
  store.inbox.drain(lease);
  expect(store.leases.release(lease)).toBe(true);
  expect(await finished).toMatchObject([{ child: 'a' }, { child: 'b' }]);
  expect(entryLines(store.entries.read('main', { kind: 'anchor' })).slice(1)).toEqual([
    'anchor merge/a',
    'anchor merge/b',
  ]);
});
