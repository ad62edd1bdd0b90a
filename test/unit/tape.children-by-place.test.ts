import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';

test('children are listed by the places where they left, a page at a time', () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('one'), user('two'), user('three')]);
  for (const [name, cut] of [
    ['late', '@4'],
    ['early', '@2'],
    ['middle', '@3'],
    ['next', '@3'],
  ] as const)
    store.lineage.fork('main', { name, cut });
  store.lineage.fork('middle', { name: 'below', cut: '@3' });
  store.sessions.update('next', { lifecycle: 'archived' });
  const names = (leftFrom: number, more = {}) =>
    store.sessions.list({ parent: 'main', leftFrom, ...more }).map(({ session }) => session);
  expect(names(1)).toEqual(['early', 'middle', 'late']);
  expect(names(1, { all: true })).toEqual(['early', 'middle', 'next', 'late']);
  expect(names(3, { all: true, limit: 2 })).toEqual(['middle', 'next']);
  expect(names(4)).toEqual(['late']);
  expect(names(5)).toEqual([]);
});
