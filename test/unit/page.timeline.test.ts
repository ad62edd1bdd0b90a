import type { TimelineItem } from '@tapedeck/cli/internal';
import { undoSession } from '@tapedeck/runtime';
import {
  anchor,
  assistant,
  compaction,
  handoff,
  note,
  openTapeStore,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { itemsInParts, pageOn } from '../support/page.ts';

const usage = { input: 10, output: 5, reasoning: 1, cacheRead: 2, cacheWrite: 0 };
const call = (n: number) => ({ toolCallId: `c${n}`, toolName: 'read' });

/** Three turns with calls, whose results come out of order. */
function say(store: SqliteTapeStore, session: string, n: number): void {
  store.entries.append(session, [
    user(`Question ${n}`),
    assistant(
      [
        { type: 'text', text: `Let me look ${n}.` },
        toolCall(`c${n}`, 'read', { n }),
        toolCall(`d${n}`, 'read', {}),
      ],
      { model: 'a/b', usage },
    ),
    toolResult({ toolCallId: `d${n}`, toolName: 'read' }, 'second'),
    note('tool/progress', { n }),
    toolResult(call(n), `first ${n}`),
    assistant(`Answer ${n}`, { model: 'a/b', usage }),
  ]);
}

/** A session with all that a timeline has. */
function fullStore(): SqliteTapeStore {
  const store = openTapeStore(':memory:');
  store.sessions.open('main');
  say(store, 'main', 1);
  store.entries.append('main', [anchor('task', { goal: 'x' })]);
  store.lineage.fork('main', { name: 'early' });
  say(store, 'main', 2);
  const cut = store.sessions.find('main')?.head ?? 0;
  say(store, 'main', 3);
  store.lineage.fork('main', { name: 'kid', intention: { nextSteps: 'Check it.' } });
  store.entries.append('kid', [assistant('All is well.', { model: 'a/b', usage })]);
  store.lineage.merge('kid');
  store.history.rewind('main', cut);
  say(store, 'main', 4);
  const { head = 0 } = store.sessions.find('main') ?? {};
  store.entries.append('main', [compaction({ summary: 'So far so good.', range: [1, head] })]);
  store.lineage.fork('main', { name: 'other' });
  store.entries.append('other', [assistant('Found.', { model: 'a/b', usage })]);
  store.lineage.merge('other');
  store.entries.append('main', [handoff('review', { summary: 'Look at it.' }), user('Go on.')]);
  store.entries.append('main', [assistant([toolCall('open', 'write', { path: '/x' })])]);
  return store;
}

const briefly = ({ seq, kind, parts, hides, forks = [], child }: TimelineItem) =>
  [
    `${seq} ${kind}`,
    ...parts.map((part) => (part.type === 'call' ? `${part.call} ${part.state}` : part.type)),
    ...(hides === undefined ? [] : [`hides ${hides.from}-${hides.to}`]),
    ...(child === undefined ? [] : [`${child.session} ${child.range?.join('-')} ${child.state}`]),
    ...forks.map(({ session, state }) => `${session} ${state}`),
  ].join(', ');

describe('a timeline', () => {
  test('folds results under their calls, and what a rewind hides into the rewind', async () => {
    using store = fullStore();
    const { items } = await pageOn(store).timeline({ session: 'main', from: 1, to: 200 });
    expect(items.map(briefly)).toEqual([
      '2 message, text',
      '3 message, text, c1 done, d1 done',
      '7 message, text',
      '8 anchor, state',
      '8 forks, early active',
      '9 message, text',
      '10 message, text, c2 done, d2 done',
      '14 message, text',
      '20 forks, kid active',
      '23 rewind, text, hides 15-23',
      '24 message, text',
      '25 message, text, c4 done, d4 done',
      '29 message, text',
      '30 boundary, text, state',
      '30 forks, other merged',
      '31 merge, text, other 31-32 completed',
      '33 boundary, text',
      '34 message, text',
      '35 message, open waiting',
    ]);
  });

  test.each([1, 2, 3, 5, 7, 50])('is the same in parts of %i positions', async (size) => {
    using store = fullStore();
    const page = pageOn(store);
    for (const how of [{}, { all: true }, { hidden: true }, { all: true, hidden: true }]) {
      const { items } = await page.timeline({ session: 'main', from: 1, to: 200, ...how });
      expect(await itemsInParts(page, 'main', { size, ...how })).toEqual(items);
      expect(await itemsInParts(page, 'main', { size, backward: true, ...how })).toEqual(items);
    }
  });
});

/** A session with an anchor that is followed, a discard, and a merge as its last act; and a child with a call that is open. */
function actsStore(): SqliteTapeStore {
  const store = openTapeStore(':memory:');
  store.sessions.open('main');
  store.entries.append('main', [user('Ask'), assistant('Say.'), anchor('early')]);
  store.entries.append('main', [user('More'), assistant('Say more.')]);
  for (const name of ['kid', 'other', 'waiting']) store.lineage.fork('main', { name });
  store.entries.append('kid', [assistant('Done.')]);
  store.entries.append('waiting', [assistant([toolCall('c', 'read', {})])]);
  store.lineage.merge('other', { strategy: 'discard' });
  store.lineage.merge('kid');
  return store;
}

/** The positions at which the page offers an undo. */
async function undosOffered(store: SqliteTapeStore): Promise<readonly number[]> {
  const { items } = await pageOn(store).timeline({ session: 'main', from: 1, to: 200 });
  return items
    .filter(({ commands }) => commands.some(({ what }) => what === 'Undo it'))
    .map(({ seq }) => seq);
}

test('an undo is offered where the verb would do it now', async () => {
  for (const isFollowed of [false, true]) {
    const make = () => {
      const store = actsStore();
      if (isFollowed) store.entries.append('main', [user('And on')]);
      return store;
    };
    using store = make();
    const { head = 0 } = store.sessions.find('main') ?? {};
    const done: number[] = [];
    for (let seq = 1; seq <= head; seq += 1) {
      using own = make();
      await undoSession(own, 'main', { at: seq }).then(
        () => done.push(seq),
        () => {},
      );
    }
    expect(await undosOffered(store)).toEqual(done);
    expect(done.length).toBe(isFollowed ? 0 : 1);
  }
});

test('an undo of the last act is offered where the verb would do it now', async () => {
  const acts: readonly (readonly [what: string, act: (store: SqliteTapeStore) => unknown])[] = [
    ['no act', () => {}],
    ['a merge', (store) => store.lineage.merge('kid')],
    ['a discard', (store) => store.lineage.merge('kid', { strategy: 'discard' })],
    ['a rewind', (store) => store.history.rewind('main', 3)],
    [
      'an anchor, and what follows it',
      (store) => {
        store.entries.append('main', [anchor('late')]);
        store.entries.append('main', [user('And on')]);
      },
    ],
    [
      'an anchor behind an open call',
      (store) => {
        store.entries.append('main', [assistant([toolCall('c', 'read', {})])]);
        store.entries.append('main', [anchor('late')]);
      },
    ],
  ];
  const offered: string[] = [];
  for (const [what, act] of acts) {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    store.entries.append('main', [user('Ask'), assistant('Say.'), user('More'), assistant('Say more.')]);
    store.lineage.fork('main', { name: 'kid' });
    store.entries.append('kid', [assistant('Done.')]);
    act(store);
    const { commands } = await pageOn(store).session({ session: 'main' });
    const isOffered = commands.some(({ line }) => line === 'tape undo main');
    if (isOffered) offered.push(what);
    const isDone = await undoSession(store, 'main').then(
      () => true,
      () => false,
    );
    expect(isOffered, what).toBe(isDone);
  }
  expect(offered).toEqual(['a merge', 'a rewind']);
});

test('a child with a call that has no result is offered neither to merge nor to discard', async () => {
  using store = actsStore();
  const verbs = async () =>
    (await pageOn(store).session({ session: 'waiting' })).commands.map(({ line }) => line.split(' ')[1]);
  expect(await verbs()).not.toEqual(expect.arrayContaining(['merge']));
  expect(await verbs()).not.toEqual(expect.arrayContaining(['discard']));
  store.entries.append('waiting', [toolResult({ toolCallId: 'c', toolName: 'read' }, 'x'), assistant('So.')]);
  expect(await verbs()).toEqual(expect.arrayContaining(['merge', 'discard']));
});
