import { view } from '@tapedeck/tape';
import type { Problem } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import { adopt, bundleOf, faceOf } from '../support/bundles.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { openStore } from '../support/store.ts';

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
