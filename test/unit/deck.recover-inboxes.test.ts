// A deck that opens the home by itself: a store that a program opened has made the merges already.
import { openDeck } from '@tapedeck/runtime';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { entryLines } from '../support/scripted.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** A home whose process died while merges of two children waited in the inbox of their parent. */
async function killedHome(): Promise<TempHome> {
  const home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  store.entries.append('main', [user('Go')]);
  store.leases.acquire('main', { id: 'gone' }, { ttlMs: 20 });
  for (const name of ['one', 'two']) {
    store.lineage.fork('main', { name, deliver: 'merge' });
    store.entries.append(name, [assistant(`Done: ${name}.`)]);
    store.sessions.update(name, { task: 'completed' });
    store.inbox.post('main', { body: { type: 'merge', draft: { child: name } }, source: 'agent', key: name });
  }
  await expect.poll(() => store.leases.list()).toEqual([]);
  return home;
}

const inboxOf = (home: TempHome): number => home.contents().rows.inbox ?? 0;

test('a deck that is opened for a recovery reports the merges that waited in inboxes, and makes each once', async () => {
  using home = await killedHome();
  const before = home.contents();
  {
    await using deck = await openDeck({ home: home.path });
    const shown = await deck.recover({ dryRun: true });
    expect(shown.merged).toEqual(['one', 'two']);
    expect(shown.sessions).toMatchObject([
      { session: 'one', act: 'merge' },
      { session: 'two', act: 'merge' },
    ]);
  }
  expect(home.contents()).toEqual(before);
  {
    await using deck = await openDeck({ home: home.path });
    expect(await deck.recover('main')).toMatchObject({ merged: ['one', 'two'], failed: [], busy: [] });
    expect(inboxOf(home)).toBe(0);
    expect((await deck.recover()).merged).toEqual([]);
  }
  using store = home.open();
  const merges = entryLines(store.entries.read('main', { kind: 'anchor' })).filter((line) =>
    line.includes('merge/'),
  );
  expect(merges).toEqual(['anchor merge/one', 'anchor merge/two']);
});

test.each<[string, (deck: Awaited<ReturnType<typeof openDeck>>) => unknown]>([
  ['session', (deck) => deck.session('main')],
  ['find', (deck) => deck.find('main')],
  ['sessions', (deck) => deck.sessions()],
  ['store', (deck) => deck.store],
  ['graph', (deck) => deck.graph],
])('any other use of a deck, here its %s, makes the merges that wait', async (_, use) => {
  using home = await killedHome();
  await using deck = await openDeck({ home: home.path });
  expect(inboxOf(home)).toBe(2);
  await use(deck);
  expect(inboxOf(home)).toBe(0);
});
