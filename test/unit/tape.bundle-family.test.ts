import { assistant, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { adopt, bundleOf, faceOf } from '../support/bundles.ts';
import { countedIds } from '../support/ids.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { openStore } from '../support/store.ts';

/** A store whose ids are its own: those of two stores with counted ids would be equal. */
function storeOf(letter: string): SqliteTapeStore {
  return openStore(':memory:', { secrets: [], newId: countedIds(`01J${letter}`) });
}

function damage(store: SqliteTapeStore): string[] {
  return [...store.verify()].flatMap(({ code, message }) =>
    code === 'not-here' ? [] : [`${code}: ${message}`],
  );
}

function words(store: SqliteTapeStore, name: string): string[] {
  return view(store.views.entries(name)).messages.map(({ content }) => JSON.stringify(content));
}

test('--as with a tree gives other names to those that are taken, and no other ones', async () => {
  using here = storeOf('A');
  fillForForgeries(here);
  here.lineage.fork('main', { name: 'main-fork-x' });
  using there = storeOf('B');
  for (const name of ['main', 'child', 'main-fork-x', 'other']) there.sessions.open(name);
  const bundle = bundleOf(here, 'main', { scope: 'tree' });
  const { sessions, aliasesTaken } = await adopt(there, bundle, { as: 'theirs' });
  expect(sessions.map(({ session, became }) => [session, became])).toEqual([
    ['theirs', 'new'],
    ['theirs+child', 'new'],
    ['grand', 'new'],
    ['theirs-fork-x', 'new'],
  ]);
  expect(aliasesTaken).toEqual(['other']);
  expect(damage(there)).toEqual([]);
  for (const { id } of sessions)
    expect(there.sessions.find(id)?.headHash).toBe(here.sessions.find(id)?.headHash);
  expect(there.sessions.find('theirs+child')).toMatchObject({ parent: 'theirs', delivery: 'merged' });
  expect([...there.lineage.read({ session: 'theirs+child' })][0]).toMatchObject({
    type: 'fork',
    session_id: 'theirs+child',
    parent_session_id: 'theirs',
    was: 'child',
  });
  // Once it is here, its bundles need no name.
  here.entries.append('main', [user('More.')]);
  const grown = await adopt(there, bundleOf(here, 'main', { scope: 'tree' }));
  expect([grown.session, grown.entries]).toEqual(['theirs', 1]);
  expect(damage(there)).toEqual([]);
});

test('a session that was merged under its old name keeps its merge under a new one, and merges here once more', async () => {
  using here = storeOf('A');
  fillForForgeries(here);
  using there = storeOf('B');
  there.sessions.open('child');
  const { session, sessions } = await adopt(there, bundleOf(here, 'child', { scope: 'lineage' }), {
    as: 'kid',
  });
  expect([session, sessions.length]).toEqual(['kid', 2]);
  expect(damage(there)).toEqual([]);
  expect(there.sessions.find('kid')).toMatchObject({ delivery: 'merged', parent: 'main' });
  expect(words(there, 'main')).toEqual(words(here, 'main'));
  there.entries.append('kid', [assistant('More.')]);
  there.lineage.merge('kid');
  there.lineage.fork('kid', { name: 'below' });
  expect(words(there, 'main').at(-1)).toContain('Session kid has reported back.');
  expect(damage(there)).toEqual([]);
  // What is exported from here has both names, and lands elsewhere.
  using third = storeOf('C');
  await adopt(third, bundleOf(there, 'main', { scope: 'tree' }));
  expect(third.sessions.find('kid')?.headHash).toBe(there.sessions.find('kid')?.headHash);
  expect(damage(third)).toEqual([]);
});

test('a child of which another one was merged here is refused where it takes its key', async () => {
  using here = storeOf('A');
  here.sessions.open('main');
  using there = storeOf('B');
  await adopt(there, bundleOf(here, 'main'));
  here.lineage.fork('main', { name: 'a', key: 'same' });
  there.lineage.fork('main', { name: 'b', key: 'same' });
  await expect(adopt(there, bundleOf(here, 'a'))).rejects.toMatchObject({ code: 'TAPE_EXISTS' });
  expect(there.sessions.find('a')).toBeUndefined();
  expect(damage(there)).toEqual([]);
});

/** Two homes with `main` and its fork `early`, in which `main` went on in two ways. */
async function parted(): Promise<{ here: SqliteTapeStore; there: SqliteTapeStore } & Disposable> {
  const [here, there] = [storeOf('A'), storeOf('B')];
  here.sessions.open('main');
  here.entries.append('main', [user('One'), assistant('Two')]);
  here.lineage.fork('main', { name: 'early' });
  await adopt(there, bundleOf(here, 'main', { scope: 'tree' }));
  here.entries.append('main', [user('Here')]);
  there.entries.append('main', [user('There')]);
  return {
    here,
    there,
    [Symbol.dispose]: () => {
      here.close();
      there.close();
    },
  };
}

test('a copy has what was said at the same positions, its own id and hashes, and no merges of its original', async () => {
  using both = await parted();
  const { here, there } = both;
  here.entries.append('early', [assistant('Early.')]);
  here.lineage.merge('early');
  const bundle = bundleOf(here, 'main');
  await expect(adopt(there, bundle)).rejects.toMatchObject({
    code: 'TAPE_DIVERGED',
    data: { alongside: true },
  });
  const { sessions, session, id } = await adopt(there, bundle, { as: 'theirs' });
  expect(sessions).toMatchObject([{ session: 'theirs', became: 'copy' }]);
  expect(id).not.toBe(here.sessions.find('main')?.id);
  expect(words(there, session)).toEqual(words(here, 'main'));
  expect(words(there, 'main').join()).toContain('There');
  expect(damage(there)).toEqual([]);
  expect([...there.entries.read('theirs', { kind: 'anchor' })].map(({ name, key }) => [name, key])).toEqual([
    ['session/start', undefined],
    ['merge/early', undefined],
  ]);
  // Every home gives this way the same id.
  using third = storeOf('C');
  await adopt(third, bundleOf(there, 'main'));
  expect((await adopt(third, bundle, { as: 'again' })).id).toBe(id);
  expect(third.sessions.find('again')?.headHash).toBe(there.sessions.find('theirs')?.headHash);
});

test('a session that others inherit past the place where the ways part is not copied', async () => {
  using both = await parted();
  const { here, there } = both;
  here.lineage.fork('main', { name: 'late' });
  for (const o of [{}, { as: 'theirs' }]) {
    await expect(adopt(there, bundleOf(here, 'late'), o)).rejects.toMatchObject({
      code: 'TAPE_DIVERGED',
      data: { session: 'main', alongside: false },
    });
    await expect(adopt(there, bundleOf(here, 'main', { scope: 'tree' }), o)).rejects.toMatchObject({
      code: 'TAPE_DIVERGED',
    });
  }
  expect(
    there.sessions
      .list({ all: true })
      .map((one) => one.session)
      .sort(),
  ).toEqual(['early', 'main']);
});

test('an ancestor that went on in another way behind what its fork reads is left as it is', async () => {
  using both = await parted();
  const { here, there } = both;
  here.entries.append('early', [assistant('Early.')]);
  const { sessions } = await adopt(there, bundleOf(here, 'early'));
  expect(sessions.map(({ session, became }) => [session, became])).toEqual([
    ['main', 'kept'],
    ['early', 'grown'],
  ]);
  expect(faceOf(there, 'early')).toEqual(faceOf(here, 'early'));
  expect(words(there, 'main').join()).toContain('There');
  expect(damage(there)).toEqual([]);
});

test('what was redacted elsewhere stays here until it is redacted here, and never comes back', async () => {
  using here = storeOf('A');
  here.sessions.open('main');
  here.entries.append('main', [user('A name.'), assistant('Noted.')]);
  using there = storeOf('B');
  const before = bundleOf(here, 'main');
  await adopt(there, before);
  here.entries.redact('main', 2, 'a name');
  const after = bundleOf(here, 'main');
  const adopted = await adopt(there, after);
  expect(adopted).toMatchObject({ entries: 1, redactedElsewhere: [{ session: 'main', seq: 2 }] });
  expect(words(there, 'main').join()).toContain('A name.');
  expect(damage(there)).toEqual([]);
  const { head } = there.sessions.find('main') ?? { head: 0 };
  expect(there.entries.redact('main', 2, 'a name')).toMatchObject({ repeated: false, by: head });
  expect(words(there, 'main').join()).not.toContain('A name.');
  expect(there.sessions.find('main')?.headHash).toBe(here.sessions.find('main')?.headHash);
  expect(await adopt(there, before)).toMatchObject({ entries: 0, filled: 0 });
  expect(words(there, 'main').join()).not.toContain('A name.');
  using third = storeOf('C');
  expect(await adopt(third, after)).toMatchObject({ absent: 0, redactedElsewhere: [] });
  expect([...third.verify()]).toEqual([]);
});

test('a session that a process writes here is not added to, and what is equal is no addition', async () => {
  using here = storeOf('A');
  here.sessions.open('main');
  using there = storeOf('B');
  const first = bundleOf(here, 'main');
  await adopt(there, first);
  here.entries.append('main', [user('More.')]);
  const lease = there.leases.acquire('main', { id: 'editor' });
  const grown = bundleOf(here, 'main');
  await expect(adopt(there, grown)).rejects.toMatchObject({ code: 'TAPE_BUSY' });
  expect(await adopt(there, first)).toMatchObject({ entries: 0 });
  there.leases.release(lease);
  expect(await adopt(there, grown)).toMatchObject({ entries: 1 });
});
