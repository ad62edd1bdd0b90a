import { view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';

const answers = ['One.', 'Two.', 'Three.'].map((text) => ({ text }));

async function code(act: PromiseLike<unknown>): Promise<unknown> {
  try {
    await act;
    return 'none';
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

test('sessions are listed, found, named, copied and deleted by their names', async () => {
  await using home = await scriptedDeck(answers);
  const { deck, store } = home;
  expect([await deck.saved.list(), await deck.saved.last(), await deck.saved.exists('main')]).toEqual([
    [],
    undefined,
    false,
  ]);
  const main = await deck.session('main');
  await main.run('Plan the release');
  await main.fork({ name: 'child' });
  await deck.session('temp', { ephemeral: true });
  expect(await deck.saved.list()).toMatchObject([
    { name: 'main', names: ['main'], id: main.id, title: 'Plan the release', messageCount: 2 },
  ]);
  expect((await deck.saved.last())?.id).toBe(main.id);
  // Saving gives a further name, once.
  for (let n = 0; n < 2; n += 1)
    expect(await deck.saved.save(main, 'work')).toMatchObject({ name: 'main', names: ['main', 'work'] });
  expect((await deck.saved.load('work')).id).toBe(main.id);
  // A rename moves the name that the rename before gave.
  expect(await deck.saved.rename('main', 'release')).toMatchObject({ name: 'release' });
  expect(await deck.saved.rename('release', 'final')).toMatchObject({
    name: 'final',
    names: ['main', 'final', 'work'],
  });
  expect([await deck.saved.exists('release'), await deck.saved.exists('final')]).toEqual([false, true]);
  // A copy shows what the session shows, and goes on alone.
  const copy = await deck.saved.clone('final', 'idea');
  const messages = (name: string) => view(store.views.entries(name)).messages;
  expect(messages('idea')).toEqual(messages('main'));
  await copy.run('Another way');
  expect([messages('idea').length, messages('main').length]).toEqual([4, 2]);
  expect((await deck.saved.list()).map(({ name }) => name)).toEqual(['idea', 'final']);
  // Its names are free, and its id brings it back.
  expect(await deck.saved.delete('final')).toEqual({
    id: main.id,
    names: ['main', 'final', 'work'],
    repeated: false,
  });
  expect(await deck.saved.delete(main.id)).toEqual({ id: main.id, names: [], repeated: true });
  expect([await deck.saved.exists('final'), await deck.saved.exists(main.id)]).toEqual([false, false]);
  expect((await deck.saved.list()).map(({ name }) => name)).toEqual(['idea']);
  expect(await code(deck.saved.load('main'))).toBe('TAPE_NO_SESSION');
  expect(await code(main.run('More'))).toBe('TAPE_ARCHIVED');
  for (let n = 0; n < 2; n += 1)
    expect(await deck.saved.undelete(main.id)).toMatchObject({
      name: 'final',
      names: ['main', 'final', 'work'],
    });
  expect(await deck.saved.exists('final')).toBe(true);
  for (const [act, expected] of [
    [async () => await deck.saved.save('idea', 'final'), 'TAPE_EXISTS'],
    [async () => await deck.saved.save('idea', 'a b'), 'TAPE_BAD_NAME'],
    [async () => await deck.saved.rename('idea', 'work'), 'TAPE_EXISTS'],
    [async () => await deck.saved.clone('idea', 'main'), 'TAPE_EXISTS'],
    [async () => await deck.saved.delete('none'), 'TAPE_NO_SESSION'],
    [async () => await deck.saved.undelete('none'), 'TAPE_NO_SESSION'],
    [async () => await deck.saved.purge('none', 'a test'), 'TAPE_NO_SESSION'],
    [async () => await deck.saved.purge('main', 'a test'), 'TAPE_CONFLICT'],
  ] as const)
    expect(await code(act())).toBe(expected);
});

test('a session comes back as it was, unless its name is taken or it was purged', async () => {
  await using home = await scriptedDeck(answers);
  const { deck, store } = home;
  const main = await deck.session('main');
  await main.run('Plan the release');
  store.sessions.update('main', { lifecycle: 'archived' });
  const { id } = await deck.saved.delete('main');
  await deck.saved.undelete(id);
  expect(store.sessions.find('main')?.lifecycle).toBe('archived');
  await deck.saved.delete('main');
  await deck.session('main');
  expect(await code(deck.saved.undelete(id))).toBe('TAPE_EXISTS');
  await deck.saved.delete('main');
  expect((await deck.saved.undelete(id)).id).toBe(id);
  const { erased, quotedBy, repeated } = await deck.saved.purge(id, 'a test');
  expect([erased > 2, quotedBy, repeated]).toEqual([true, [], false]);
  expect((await deck.saved.purge(id, 'a test')).repeated).toBe(true);
  expect(await code(deck.saved.undelete(id))).toBe('TAPE_ARCHIVED');
});
