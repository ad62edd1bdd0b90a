import { writeFileSync } from 'node:fs';
import { openJournal } from '@tapedeck/graph/journal';
import { openTapeStore, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { holdLock } from '../support/lock-holder.ts';
import { eventsOf } from '../support/scripted.ts';
import { tempHome } from '../support/temp-home.ts';

test('a run waits for the lock of another process without blocking the event loop', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'well' }]));
  await using deck = await openDeck({ home: home.path, model: `script:${home.file('answers.json')}` });
  const session = await deck.session('main');
  await using _locker = await holdLock(home.db, 1000);
  let ticks = 0;
  const ticker = setInterval(() => {
    ticks += 1;
  }, 5);
  const { finish } = await session.run('go');
  clearInterval(ticker);
  expect(finish).toBe('stop');
  // A wait that blocked the thread would have left one tick or two.
  expect(ticks).toBeGreaterThan(4);
});

test('a deck does not change how its store waits for locks in other uses', async () => {
  using home = tempHome();
  using store = home.open();
  const before = store.lockWaitMs;
  await using deck = await openDeck({ store });
  await deck.session('main');
  expect(store.lockWaitMs).toBe(before);
  await using _locker = await holdLock(home.db, 200);
  const waiting = deck.session('other');
  // The deck waits on timers: its first try has given up by now, and has left the store as it was.
  expect(store.lockWaitMs).toBe(before);
  expect(store.entries.append('main', [user('mine')]).added).toBe(1);
  expect((await waiting).name).toBe('other');
});

test('an act succeeds when the graph file cannot be updated for lack of the lock', async () => {
  using home = tempHome();
  home.session('main');
  const blocker = new Database(home.db);
  const file = openJournal(home.graph);
  let armed = false;
  const journal = {
    tail: () => {
      if (armed && !blocker.inTransaction) blocker.exec('BEGIN IMMEDIATE');
      return file.tail();
    },
    append: (lines: readonly string[]) => file.append(lines),
  };
  using store = openTapeStore(home.db, { journal, lockWaitMs: 0 });
  armed = true;
  expect(store.lineage.fork('main', { name: 'child' })).toMatchObject({
    session: 'child',
    graphLagging: true,
  });
  blocker.close();
  expect(home.lines().map(({ type }) => type)).toEqual(['session']);
  home.open().close();
  expect(home.lines().map(({ type }) => type)).toEqual(['session', 'fork']);
});

test('an owner notices within a moment a new inbox item, and that it was superseded', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'slow', delayMs: 600_000 }]));
  await using deck = await openDeck({ home: home.path, model: `script:${home.file('answers.json')}` });
  const main = await deck.session('main');
  const run = main.run('go');
  using other = openTapeStore(home.db);
  // Before its model call it does what it finds, and does not need the notice.
  while ((await main.status()).phase !== 'streaming') await new Promise((resolve) => setTimeout(resolve, 5));
  other.inbox.post('main', { body: { type: 'append', drafts: [user('by the way')] } });
  for await (const event of run)
    if (event.type === 'inbox-waiting') {
      expect(event.items).toBe(1);
      break;
    }
  // The clock of another process has run on: it takes the session over.
  using later = openTapeStore(home.db, { now: () => Date.now() + 60_000 });
  later.entries.append('main', [user('mine now')]);
  await expect(run).rejects.toMatchObject({ code: 'TAPE_FENCED' });
  expect((await eventsOf(run).catch(() => [])).length).toBe(0);
  expect([...other.verify()]).toEqual([]);
});
