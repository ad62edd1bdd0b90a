import type { DeckTools } from '@tapedeck/runtime';
import { tool } from 'ai';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { scriptedDeck } from '../support/scripted.ts';

const archived = {
  name: 'TapeError',
  code: 'TAPE_ARCHIVED',
  data: { session: 'main', lifecycle: 'archived' },
};

test('an archived session is not run, and nothing is written', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }, { text: 'Two.' }]);
  const { deck, store } = home;
  const main = await deck.session('main');
  await main.run('ask 1');
  store.sessions.update('main', { lifecycle: 'archived' });
  const contents = () => [
    store.sessions.find('main'),
    store.inbox.list('main'),
    store.sessions.list({ all: true }),
  ];
  const before = contents();
  const acts: readonly (readonly [act: string, does: () => PromiseLike<unknown>])[] = [
    ['run', () => main.run('ask 2')],
    ['run', () => main.run()],
    ['send to', () => main.send('ask 2')],
    ['send to', () => main.send('ask 2', { start: false })],
    ['anchor', () => main.anchor('here')],
    ['hand off', () => main.handoff('here')],
    ['compact', () => main.compact()],
    ['compact', () => main.compact({ prune: true })],
    ['undo', () => main.undo()],
    ['delegate from', () => main.delegate({ task: 'Look' })],
    ['delegate from', () => main.delegate([{ task: 'Look' }, { task: 'Listen' }])],
  ];
  for (const [act, does] of acts)
    await expect((async () => await does())()).rejects.toMatchObject({
      ...archived,
      message: `cannot ${act} 'main': it is archived`,
    });
  expect(contents()).toEqual(before);
  expect(store.leases.list()).toEqual([]);
  expect((await main.status()).state).toBe('idle');

  store.sessions.update('main', { lifecycle: 'active' });
  expect((await main.run('ask 2')).text).toBe('Two.');
});

test('the inbox of an archived session stays as it is until the session is active again', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }]);
  const { deck, store } = home;
  const main = await deck.session('main');
  const sent = await main.send('ask 1', { start: false });
  store.sessions.update('main', { lifecycle: 'archived' });
  await expect(main.run()).rejects.toMatchObject(archived);
  expect(store.inbox.list('main').map(({ id }) => id)).toEqual([sent.id]);
  store.sessions.update('main', { lifecycle: 'active' });
  expect((await main.run()).text).toBe('One.');
});

test('a session archived between check and lease is not run', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }]);
  const { deck, store } = home;
  const main = await deck.session('main');
  const { head } = await main.info();
  const { acquire } = store.leases;
  vi.spyOn(store.leases, 'acquire').mockImplementation((...given) => {
    store.sessions.update('main', { lifecycle: 'archived' });
    return acquire(...given);
  });
  await expect(main.run('ask 1')).rejects.toMatchObject(archived);
  expect([(await main.info()).head, store.leases.list()]).toEqual([head, []]);
  // A message that was left before that waits.
  store.sessions.update('main', { lifecycle: 'active' });
  expect(await main.send('ask 1')).toMatchObject({ state: 'queued' });
  expect(store.inbox.list('main').length).toBe(1);
});

test('an archived child is not resumed, and its parent receives no report', async () => {
  await using home = await scriptedDeck([{ text: 'First.', when: { session: 'kid' } }, { text: 'Second.' }]);
  const { deck, store } = home;
  const main = await deck.session('main');
  await main.delegate({ task: 'Begin', name: 'kid', key: 'k' });
  await main.fork({ name: 'left', key: 'l', deliver: 'merge' });
  for (const name of ['kid', 'left']) store.sessions.update(name, { lifecycle: 'archived' });
  const contents = () => [
    store.sessions.find('main'),
    store.sessions.find('kid'),
    store.sessions.find('left'),
    store.inbox.list('kid'),
  ];
  const before = contents();

  const resumed = main.delegate([{ task: 'Go on', resume: 'kid' }, { task: 'Look' }]);
  await expect(resumed).rejects.toMatchObject({
    code: 'TAPE_ARCHIVED',
    message: "cannot resume 'kid': it is archived",
  });
  await expect(main.delegate({ task: 'Go on', resume: 'kid' })).rejects.toMatchObject({
    code: 'TAPE_ARCHIVED',
  });
  expect(contents()).toEqual(before);

  // What has ended is the same receipt again; what has not is left as it is.
  const [again] = await main.delegate({ task: 'Begin', name: 'kid', key: 'k' });
  expect(again).toMatchObject({ session: 'kid', status: 'completed', merged: { repeated: true } });
  expect(contents()).toEqual(before);
});

/** `pay` waits for approval. */
const tools: DeckTools = {
  pay: tool({ inputSchema: z.strictObject({}), needsApproval: true, execute: async () => 'paid' }),
};
const paying = { toolCalls: [{ id: 'c1', name: 'pay', input: {} }] };

test('an archived child that has not ended is reported with its state, when its key is delegated again', async () => {
  await using home = await scriptedDeck([paying], { tools });
  const { deck, store } = home;
  const main = await deck.session('main');
  const asked = { task: 'Begin', name: 'kid', key: 'k' };
  expect(await main.delegate(asked)).toMatchObject([
    { session: 'kid', status: 'running', merged: undefined },
  ]);
  store.sessions.update('kid', { lifecycle: 'archived' });
  const before = [store.sessions.find('main'), store.sessions.find('kid')];
  expect(await main.delegate(asked)).toMatchObject([
    { session: 'kid', status: 'running', merged: undefined, error: "cannot run 'kid': it is archived" },
  ]);
  expect([store.sessions.find('main'), store.sessions.find('kid')]).toEqual(before);
});

test('answering a call of an archived session is refused', async () => {
  await using home = await scriptedDeck([paying, { text: 'Well.' }], { tools });
  const { deck, store } = home;
  const main = await deck.session('main');
  expect((await main.run('Buy')).finish).toBe('waiting');
  store.sessions.update('main', { lifecycle: 'archived' });
  await expect(main.respond('c1', { approved: true })).rejects.toMatchObject({
    ...archived,
    message: "cannot answer a call of 'main': it is archived",
  });
  expect(store.inbox.list('main')).toEqual([]);
  store.sessions.update('main', { lifecycle: 'active' });
  expect((await (await main.respond('c1', { approved: true })).run)?.text).toBe('Well.');
});
