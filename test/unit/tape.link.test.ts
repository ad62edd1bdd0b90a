import { SessionGraph, toDot } from '@tapedeck/graph';
import { readUsage } from '@tapedeck/runtime';
import { assistant, copyTapes, type SessionInfo, type SqliteTapeStore, user } from '@tapedeck/tape';
import { originOf, treeParentOf } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';

/** `main` with a fork `idea`, and the roots `next` and `last`; each has one answer of 10 tokens. */
function family(): SqliteTapeStore {
  const store = openStore();
  for (const name of ['main', 'next', 'last']) store.sessions.open(name);
  const answer = (text: string) => ({
    ...assistant(text),
    meta: { model: 'm', usage: { input: 4, output: 6 } },
  });
  for (const name of ['main', 'next', 'last']) store.entries.append(name, [user(name), answer(name)]);
  store.lineage.fork('main', { name: 'idea' });
  store.entries.append('idea', [answer('idea')]);
  return store;
}

const graphOf = (store: SqliteTapeStore): SessionGraph => SessionGraph.fromRecords(store.lineage.read());
const childrenOf = (store: SqliteTapeStore, name: string): readonly string[] =>
  graphOf(store)
    .children(name)
    .map(({ session }) => session);

test('a link puts a session under another one wherever a tree is read', async () => {
  const store = family();
  const evidence = 'line 7 of s.jsonl';
  expect(store.lineage.link('next', 'main', { type: 'clear', derived: true, evidence })).toMatchObject({
    ...{ session: 'next', parent: 'main', type: 'clear', derived: true, evidence, repeated: false },
  });
  store.lineage.link('last', 'next', { type: 'clear' });

  expect(childrenOf(store, 'main')).toEqual(['idea', 'next']);
  const listed = (query: object) =>
    store.sessions
      .list({ ...query, after: null })
      .map(({ session }) => session)
      .sort();
  expect(listed({ parent: 'main' })).toEqual(['idea', 'next']);
  expect(listed({ under: 'main' })).toEqual(['idea', 'last', 'next']);
  expect(listed({ roots: true })).toEqual(['main']);
  expect(store.newestRoots()).toEqual([store.sessions.find('main')?.id]);
  expect(store.sessions.find('next')?.link).toMatchObject({ parent: 'main', type: 'clear', derived: true });
  const info = store.sessions.find('main');
  if (info === undefined) throw new TypeError('main is missing');
  const { tree, children } = await readUsage(store, info, { tree: true });
  expect(tree.total).toBe(40);
  expect(children.map(({ session }) => session)).toEqual(['next', 'idea']);
  expect(toDot(graphOf(store).list())).toContain('[label="clear, derived"]');
  expect([...store.verify()]).toEqual([]);
});

test('the same link again writes nothing, and a derived one does not replace one that is not', () => {
  const store = family();
  const lines = () => [...store.lineage.read()].length;
  store.lineage.link('next', 'main', { type: 'clear', derived: true });
  const before = lines();
  expect(store.lineage.link('next', 'main', { type: 'clear', derived: true }).repeated).toBe(true);
  expect(lines()).toBe(before);
  store.lineage.link('next', 'last');
  expect(store.lineage.link('next', 'main', { type: 'clear', derived: true })).toMatchObject({
    ...{ kept: true, parent: 'last', type: 'moved' },
  });
  expect(lines()).toBe(before + 1);
});

test('a link is taken back, and made again, and a fork goes back to where it was forked', () => {
  const store = family();
  const parentOf = (name: string) => treeParentOf(store.sessions.find(name) ?? {}).parent;
  store.lineage.link('idea', null);
  expect([parentOf('idea'), childrenOf(store, 'main')]).toEqual([undefined, []]);
  expect(store.lineage.unlink('idea')).toMatchObject({ parent: 'main', type: 'moved' });
  expect([parentOf('idea'), childrenOf(store, 'main')]).toEqual(['main', ['idea']]);
  expect(store.lineage.unlink('idea').parent).toBe(null);
  // What it inherits, and where it is merged, is not touched.
  store.lineage.link('idea', 'last');
  expect(store.sessions.find('idea')?.parent).toBe('main');
  expect(store.lineage.merge('idea').parent).toBe('main');
  expect(childrenOf(store, 'last')).toEqual(['idea']);
  expect([...store.verify()]).toEqual([]);
  expect(() => store.lineage.unlink('main')).toThrow("cannot take a link of 'main' back");
});

test('no link makes a session an ancestor of itself', () => {
  const store = family();
  store.lineage.link('main', 'next');
  store.lineage.link('next', 'last');
  for (const [child, parent] of [
    ['last', 'idea'],
    ['last', 'last'],
    ['next', 'main'],
  ] as const)
    expect(() => store.lineage.link(child, parent)).toThrow(`cannot put '${child}' under '${parent}'`);
  store.lineage.link('main', null);
  expect(store.lineage.link('next', 'idea').parent).toBe('idea');
});

test('links travel with bundles of a tree and with copies, also where the child is older than its parent', async () => {
  const store = family();
  store.lineage.link('main', 'last', { type: 'clear', derived: true, evidence: 'why' });
  store.lineage.link('idea', 'next', { evidence: 'by hand' });
  const copy = openStore();
  expect(await copyTapes(store, copy)).toMatchObject({ refused: [], behind: [] });
  expect(childrenOf(copy, 'last')).toEqual(['main']);
  expect(copy.sessions.find('main')?.link).toMatchObject({ type: 'clear', evidence: 'why' });
  expect(childrenOf(copy, 'next')).toEqual(['idea']);
  store.lineage.unlink('idea');
  expect(await copyTapes(store, copy)).toMatchObject({ refused: [], behind: [] });
  expect(childrenOf(copy, 'next')).toEqual([]);
  expect(childrenOf(copy, 'main')).toEqual(['idea']);
  expect([...copy.verify()]).toEqual([]);
});

test('a link can name the call that started a session and its place: it is listed there, and undone as any other', () => {
  const store = family();
  const idea = () => store.sessions.find('idea');
  const left = (parent: string, leftFrom: number) =>
    store.sessions.list({ parent, leftFrom }).map(({ session }) => session);
  expect(left('main', 2)).toEqual(['idea']);
  store.lineage.link('idea', 'next', { type: 'subagent', call: 't1', seq: 2 });
  expect(originOf(idea() as SessionInfo)).toMatchObject({ parent: 'next', fromAnchor: '@2', at: 2 });
  expect(idea()).toMatchObject({ parent: 'main', spawnCall: 't1', link: { call: 't1', seq: 2 } });
  expect([left('main', 0), left('next', 2), left('next', 3)]).toEqual([[], ['idea'], []]);
  expect(store.lineage.link('idea', 'next', { type: 'subagent', call: 't1', seq: 2 }).repeated).toBe(true);
  store.lineage.link('idea', 'last');
  expect([left('main', 0), left('last', 0), idea()?.spawnCall]).toEqual([['idea'], [], undefined]);
  expect(store.lineage.unlink('idea')).toMatchObject({ parent: 'next', call: 't1', seq: 2 });
  expect(left('next', 2)).toEqual(['idea']);
  expect(() => store.lineage.link('idea', 'last', { seq: 99 })).toThrow(/'last' ends at/);
  expect(() => store.lineage.link('idea', null, { seq: 1 })).toThrow('a root has none');
  store.lineage.link('idea', 'next', { call: 'x'.repeat(5000), seq: 1 });
  expect(idea()?.link).toEqual({ parent: 'next', parentId: expect.any(String), type: 'moved', seq: 1 });
  expect([...store.verify()]).toEqual([]);
});
