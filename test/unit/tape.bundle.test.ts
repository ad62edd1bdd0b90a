import { symlinkSync } from 'node:fs';
import { view } from '@tapedeck/tape';
import type { Problem } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import { adopt, bundleOf, faceOf } from '../support/bundles.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { rawDb } from '../support/raw-db.ts';
import { openStore } from '../support/store.ts';
import { tempHome } from '../support/temp-home.ts';

test('a bundle lands in an empty home with the same heads, views and states', async () => {
  using here = openStore();
  fillForForgeries(here);
  expect([...here.verify()]).toEqual([]);
  using there = openStore();
  const bundle = bundleOf(here, 'main', { scope: 'tree' });
  const adopted = await adopt(there, bundle);
  expect(adopted.sessions.map(({ session, became }) => [session, became])).toEqual([
    ['main', 'new'],
    ['child', 'new'],
    ['grand', 'new'],
  ]);
  for (const name of ['main', 'child', 'grand']) {
    expect(faceOf(there, name)).toEqual(faceOf(here, name));
    expect(view(there.views.entries(name)).digest).toBe(view(here.views.entries(name)).digest);
  }
  expect([...there.verify()] as Problem[]).toEqual([]);
  expect(
    bundleOf(there, 'main', { scope: 'tree' })
      .split('\n')
      .filter((l) => l.startsWith('{"e"')),
  ).toEqual(bundle.split('\n').filter((l) => l.startsWith('{"e"')));
  const again = await adopt(there, bundle);
  expect([again.entries, again.lines, again.filled]).toEqual([0, 0, 0]);
});

test.each([
  ['a title with U+0000', { title: 'a\0b' }],
  ['a title of 5000 characters', { title: 't'.repeat(5000) }],
  ['an id of a call with U+0000', { spawnCall: 'a\0b' }],
  ['an id of a call of 5000 characters', { spawnCall: 'c'.repeat(5000) }],
])('a session with %s travels, also one that an earlier version has stored as it was', async (_, odd) => {
  using home = tempHome();
  using here = home.open();
  here.sessions.open('main');
  here.lineage.fork('main', { name: 'child', ...odd });
  using there = openStore();
  const { sessions } = await adopt(there, bundleOf(here, 'main', { scope: 'tree' }));
  expect(sessions.map(({ session, became }) => [session, became])).toEqual([
    ['main', 'new'],
    ['child', 'new'],
  ]);
  expect([...there.verify()]).toEqual([]);
  using db = rawDb(home.db);
  db.dropTriggers();
  const [[name, value] = []] = Object.entries(odd);
  db.run(`UPDATE tape SET ${name === 'title' ? 'title' : 'spawn_call'} = ? WHERE name = 'child'`, value);
  using other = openStore();
  await adopt(other, bundleOf(here, 'main', { scope: 'tree' }));
  expect(other.sessions.list().map(({ session }) => session)).toContain('child');
  expect([...other.verify()]).toEqual([]);
});

test('a store reads none of its own files as a bundle: to close one would drop the locks of the process', async () => {
  using home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  symlinkSync(home.db, home.file('link'));
  for (const file of [home.db, `${home.db}-wal`, `${home.db}-shm`, home.file('link')])
    await expect(store.bundles.adopt(file)).rejects.toMatchObject({
      code: 'TAPE_BAD_BUNDLE',
      message: `cannot import '${file}': it is the database itself`,
    });
});
