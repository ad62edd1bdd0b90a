import { drawGraph, drawTree } from '@tapedeck/graph';
import { anchor, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { openStore } from '../support/store.ts';
import { tempHome } from '../support/temp-home.ts';

test('a fork through the graph creates a session, which the graph contains at once', async () => {
  using home = tempHome();
  home.session('main', anchor('plan'), user('Go'));
  await using deck = await openDeck({ home: home.path });
  const whole = await deck.graph.fork('main');
  const part = await deck.graph.fork('main', 'plan');
  expect(deck.graph.children('main').map(({ session }) => session)).toEqual([whole, part]);
  expect(deck.graph.parent(part)?.session).toBe('main');
  expect(deck.graph.metadata(part)).toEqual({
    session_id: part,
    parent_session_id: 'main',
    from_anchor: 'plan',
    created_at: expect.any(String),
    status: 'active',
  });
  expect(deck.graph.metadata(whole)?.from_anchor).toBeNull();
  expect(await deck.find(part)).toMatchObject({ name: part });
});

test('an unknown parent or anchor forks nothing', async () => {
  using home = tempHome();
  home.session('main', anchor('plan'));
  await using deck = await openDeck({ home: home.path });
  await expect(deck.graph.fork('mian')).rejects.toMatchObject({
    code: 'TAPE_NO_SESSION',
    data: { near: ['main'] },
  });
  await expect(deck.graph.fork('main', 'plam')).rejects.toMatchObject({
    code: 'TAPE_NO_ANCHOR',
    data: { near: ['plan'] },
  });
  expect(deck.graph.list()).toHaveLength(1);
});

test('a status that is set is read back, here and by every later reader of the file', async () => {
  using home = tempHome();
  home.session('main');
  await using deck = await openDeck({ home: home.path });
  expect(deck.graph.status('main')).toBe('active');
  await deck.graph.setStatus('main', 'archived');
  expect(deck.graph.status('main')).toBe('archived');
  await using other = await openDeck({ home: home.path });
  expect(other.graph.list({ lifecycle: 'archived' }).map(({ session }) => session)).toEqual(['main']);
});

test('reads include what other processes write', async () => {
  using home = tempHome();
  home.session('main');
  await using deck = await openDeck({ home: home.path });
  expect(deck.graph.list()).toHaveLength(1);
  home.session('second');
  expect(deck.graph.find('second')).toMatchObject({ session: 'second', lifecycle: 'active' });
  expect(deck.graph.skipped).toMatchObject({ torn: 0, malformed: 0 });
});

test('the line of descent goes from the root to the youngest', async () => {
  using home = tempHome();
  home.session('main');
  await using deck = await openDeck({ home: home.path });
  const child = await deck.graph.fork('main');
  const grandchild = await deck.graph.fork(child);
  expect(deck.graph.ancestors(grandchild).map(({ session }) => session)).toEqual([child, 'main']);
  expect(deck.graph.descendants('main').map(({ session }) => session)).toEqual([child, grandchild]);
  expect(deck.graph.lineage(child).map(({ node, depth }) => [node.session, depth])).toEqual([
    ['main', 0],
    [child, 1],
    [grandchild, 2],
  ]);
  expect(deck.graph.merges('main')).toEqual([]);
});

test('a deck on a given store has an empty graph, and can still fork', async () => {
  using store = openStore();
  await using deck = await openDeck({ store });
  await deck.session('main');
  const child = await deck.graph.fork('main');
  expect(store.sessions.find(child)).toMatchObject({ parent: 'main' });
  expect(deck.graph.list()).toEqual([]);
});

test('a deck requires a home or a store', async () => {
  await expect(openDeck({})).rejects.toThrow(TypeError);
});

test('a deck renders its graph: a tree of all sessions, or of one, and lanes', async () => {
  using home = tempHome();
  home.session('main', anchor('plan'));
  await using deck = await openDeck({ home: home.path });
  const child = await deck.graph.fork('main', 'plan');
  await deck.session('other');
  const tree = [
    expect.stringMatching(/^main {2}session {2}active/),
    expect.stringMatching(new RegExp(`^╰─ ${child} `)),
  ];
  expect(drawTree(deck.graph)).toEqual([...tree, expect.stringMatching(/^other {2}session/)]);
  expect(drawTree(deck.graph, 'main')).toEqual(tree);
  expect(drawGraph(deck.graph.list()).join('\n')).toContain(child);
});
