import { writeFileSync } from 'node:fs';
import { openJournal } from '@tapedeck/graph/journal';
import { openDeck } from '@tapedeck/runtime';
import { openTapeStore, processOwner, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { type Process, startProcess } from '../support/process.ts';
import { eventsOf } from '../support/scripted.ts';
import { refusal } from '../support/store.ts';
import { tempHome } from '../support/temp-home.ts';

/** Holds a database's write lock for so many milliseconds, as a process does that is stopped inside a transaction. */
const locker = `
  import Database from 'better-sqlite3';
  const [file, ms] = process.argv.slice(1);
  const db = new Database(file);
  db.exec('BEGIN IMMEDIATE');
  console.log('locked');
  setTimeout(() => { db.exec('ROLLBACK'); db.close(); }, Number(ms));
`;

async function locked(file: string, ms: number): Promise<Process> {
  const process = startProcess(locker, file, String(ms));
  await process.said('locked');
  return process;
}

test('a run waits for the lock of another process without holding up the event loop', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'well' }]));
  await using deck = await openDeck({ home: home.path, model: `script:${home.file('answers.json')}` });
  const session = await deck.session('main');
  await using _locker = await locked(home.db, 1000);
  let [ticks, longest, last] = [0, 0, performance.now()];
  const ticker = setInterval(() => {
    const now = performance.now();
    [ticks, longest, last] = [ticks + 1, Math.max(longest, now - last), now];
  }, 5);
  const { finish } = await session.run('go');
  clearInterval(ticker);
  expect(finish).toBe('stop');
  // A wait that held the thread would have left one tick or two.
  expect(ticks).toBeGreaterThan(10);
  expect(longest).toBeLessThan(500);
});

test('an act that never gets the lock says who is writing, and what that process is doing (M3)', async () => {
  using home = tempHome();
  home.session('main');
  await using stopped = await locked(home.db, 60_000);
  using store = openTapeStore(home.db, { lockWaitMs: 0 });
  stopped.child.kill('SIGKILL');
  await stopped.kill();
  store.acquire('main', { ...processOwner('orchestrator'), pid: process.pid });
  await using _locker = await locked(home.db, 60_000);
  const error = refusal(() => store.session('other'));
  expect(error).toMatchObject({
    code: 'TAPE_LOCKED',
    data: { holders: [{ session: 'main', owner: 'orchestrator', pid: process.pid, state: 'running' }] },
  });
  expect(error.message).toContain(`process ${process.pid}`);
});

test('what is done is done when the graph file cannot be brought up to date for want of the lock', async () => {
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
  expect(store.fork('main', { name: 'child' })).toMatchObject({ session: 'child', graphLagging: true });
  blocker.close();
  expect(home.lines().map(({ type }) => type)).toEqual(['session']);
  home.open().close();
  expect(home.lines().map(({ type }) => type)).toEqual(['session', 'fork']);
});

test('an owner hears within a moment that something was left for it, and that it was superseded', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'slow', delayMs: 20_000 }]));
  await using deck = await openDeck({ home: home.path, model: `script:${home.file('answers.json')}` });
  const run = (await deck.session('main')).run('go');
  using other = openTapeStore(home.db);
  while ((other.find('main')?.head ?? 0) < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  other.post('main', { body: { type: 'append', drafts: [user('by the way')] } });
  for await (const event of run)
    if (event.type === 'inbox-waiting') {
      expect(event.items).toBe(1);
      break;
    }
  // The clock of another process has run on: it takes the session over.
  using later = openTapeStore(home.db, { now: () => Date.now() + 60_000 });
  later.append('main', [user('mine now')]);
  await expect(run).rejects.toMatchObject({ code: 'TAPE_FENCED' });
  expect((await eventsOf(run).catch(() => [])).length).toBe(0);
  expect([...other.verify()]).toEqual([]);
});
