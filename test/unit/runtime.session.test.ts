import { setTimeout as sleep } from 'node:timers/promises';
import { type SqliteTapeStore, TapeError, user } from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { fixedClock } from '../support/clock.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

test('anchors and handoffs return their position, and a handoff begins the view anew', async () => {
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

test('inbox items from before a run precede its input', async () => {
  const clock = fixedClock();
  const store = openStore(':memory:', { now: clock.now });
  await using home = await scriptedDeck([{ text: 'Well.' }], { store });
  const main = await home.deck.session('main');
  store.leases.acquire('main', { id: 'other-owner' });
  store.inbox.post('main', { body: { type: 'append', drafts: [user('First.')] } });
  // The process that was to take it is gone.
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
  const { append } = store.entries;
  vi.spyOn(store.entries, 'append').mockImplementation((...args) => {
    appends += 1;
    if (appends > after) throw new TapeError('TAPE_IO', 'cannot use the database file: it is full');
    return append(...args);
  });
  return store;
}

test('a child whose answer cannot be recorded has failed, and its run says why', async () => {
  await using home = await scriptedDeck([{ text: 'Well.' }], { store: filling(openStore(), 1) });
  const main = await home.deck.session('main');
  const child = await main.fork({ name: 'child' });
  await expect(child.run('Go')).rejects.toMatchObject({ code: 'TAPE_IO' });
  expect(home.store.sessions.find('child')).toMatchObject({ task: 'failed' });
  expect(entryLines(home.store.entries.read('child', { own: true })).at(-1)).toBe('user: Go');
  // It has no owner.
  expect(home.store.leases.acquire('child', { id: 'next' })).toMatchObject({ owner: 'next' });
});

test('a session whose disk was full can run as soon as the disk has room', async () => {
  const store = openStore();
  await using home = await scriptedDeck([{ text: 'Well.' }], { store });
  const main = await home.deck.session('main');
  const { append } = store.entries;
  const { release } = store.leases;
  const fail = () => {
    throw new TapeError('TAPE_IO', 'cannot use the database file: it is full');
  };
  Object.assign(store.entries, { append: fail });
  Object.assign(store.leases, { release: fail });
  for (const text of ['One?', 'Two?', 'Three?'])
    await expect(main.run(text)).rejects.toMatchObject({ code: 'TAPE_IO' });
  Object.assign(store.entries, { append });
  Object.assign(store.leases, { release });
  expect(await main.run('Four?')).toMatchObject({ finish: 'stop', text: 'Well.' });
  expect(store.leases.list()).toEqual([]);
});

test('an answer recorded before its chunks were saved has no saved chunks', async () => {
  const store = openStore();
  const saved: number[] = [];
  const { save } = store.live;
  vi.spyOn(store.live, 'save').mockImplementation((streams) => {
    saved.push(streams.length);
    save(streams);
  });
  const wait = tool({ inputSchema: z.object({}), execute: async () => await sleep(60, 'waited') });
  await using home = await scriptedDeck(
    [{ toolCalls: [{ name: 'wait', input: {}, id: 'c1' }] }, { text: 'Well.' }],
    { store, tools: { wait } },
  );
  expect(await (await home.deck.session('main')).run('Wait')).toMatchObject({ finish: 'stop' });
  expect(saved.filter((streams) => streams === 0)).toEqual([]);
});

test('a child that cannot run for lack of a summarizer’s key does not count as running', async () => {
  await using home = await scriptedDeck([{ text: 'Well.' }], { summarizer: 'openai-compatible/small' });
  const child = await (await home.deck.session('main')).fork({ name: 'child' });
  const before = home.store.sessions.find('child');
  await expect(child.run('Go')).rejects.toMatchObject({ code: 'SESSION_NO_KEY' });
  expect(home.store.sessions.find('child')).toEqual(before);
});

test('merges of several children into a busy parent all arrive, each once', async () => {
  const store = openStore(':memory:', { now: fixedClock().now });
  await using home = await scriptedDeck([{ text: 'Well.' }], { store });
  const main = await home.deck.session('main');
  const children = [await main.fork({ name: 'a' }), await main.fork({ name: 'b' })];
  for (const child of children) await child.run('Go');
  const lease = store.leases.acquire('main', { id: 'other-owner' });
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
