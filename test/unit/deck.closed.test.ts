import { openDeck } from '@tapedeck/runtime';
import { openTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';
import { tempDir } from '../support/temp-dir.ts';

test('every act after the close of a deck that opened its store has one code; on a store that stays open, what runs', async () => {
  await using home = await scriptedDeck([{ text: 'ok' }]);
  using dir = tempDir();
  for (const place of [{ home: dir.file('home') }, { store: home.store }]) {
    const deck = await openDeck({ ...place, model: home.spec });
    const main = await deck.session('main');
    const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
    await deck.close();
    const runs = [() => main.run('x'), () => main.delegate('x'), () => main.compact()];
    const acts = [
      () => main.send('x'),
      () => main.fork(),
      () => main.anchor('x'),
      () => main.rewind(1),
      () => main.branch(),
      () => main.view(),
      () => main.info(),
      () => main.status(),
      () => kid.finish(),
      () => deck.session('main'),
      () => deck.sessions(),
      () => deck.find('main'),
      () => deck.recover(),
    ];
    for (const act of 'home' in place ? [...runs, ...acts] : runs)
      await expect((async () => await act())(), String(act)).rejects.toMatchObject({
        code: 'SESSION_CLOSED',
      });
    if ('store' in place) expect(await main.send('x')).toMatchObject({ state: 'queued' });
  }
});

test('a store that is given as a promise is closed with the deck; one that cannot be opened, or used, is its error', async () => {
  const store = openTapeStore(':memory:');
  const deck = await openDeck({ store: Promise.resolve(store) });
  expect((await deck.session('main')).name).toBe('main');
  await deck.close();
  expect(() => store.sessions.list()).toThrow(expect.objectContaining({ code: 'TAPE_CLOSED' }));

  const refused = Promise.reject(new Error('no server answers'));
  await expect(openDeck({ store: refused })).rejects.toThrow('no server answers');
  const other = openTapeStore(':memory:');
  await expect(openDeck({ store: Promise.resolve(other), limits: { maxSteps: 0 } })).rejects.toMatchObject({
    code: 'SESSION_BAD_CONFIG',
  });
  expect(() => other.sessions.list()).toThrow(expect.objectContaining({ code: 'TAPE_CLOSED' }));
});
