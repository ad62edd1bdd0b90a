import { openTapeStore, processOwner, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { holdLock } from '../support/lock-holder.ts';
import { refusal } from '../support/store.ts';
import { tempHome } from '../support/temp-home.ts';

test('an act that cannot get the lock names the process that writes, and what it does', async () => {
  using home = tempHome();
  home.session('main');
  using store = openTapeStore(home.db, { lockWaitMs: 0 });
  store.leases.acquire('main', processOwner('orchestrator'));
  await using _holder = await holdLock(home.db, 60_000);
  const error = refusal(() => store.sessions.open('other'));
  expect(error).toMatchObject({
    code: 'TAPE_LOCKED',
    data: { holders: [{ session: 'main', owner: 'orchestrator', pid: process.pid, state: 'running' }] },
  });
  expect(error.message).toContain(`process ${process.pid}`);
});

test('an act that cannot get the lock names the process that holds it, also one without a lease', async () => {
  using home = tempHome();
  home.session('main');
  using store = openTapeStore(home.db, { lockWaitMs: 0 });
  await using holder = await holdLock(home.db, 60_000);
  const error = refusal(() => store.sessions.open('other'));
  const program = expect.stringMatching(/node/i);
  expect(error.data).toEqual({ holders: [], processes: [{ pid: holder.child.pid, program }] });
  expect(error.message).toMatch(
    new RegExp(`process ${holder.child.pid} \\(.*node.*\\) holds the lock$`, 'i'),
  );
});

test('an act reads nothing before it has the lock, so nothing that it read can have changed', async () => {
  using home = tempHome();
  home.session('main');
  let asked = 0;
  using store = openTapeStore(home.db, {
    lockWaitMs: 0,
    now: () => {
      asked += 1;
      return Date.now();
    },
  });
  const acts = [
    () => store.entries.append('main', [user('x')]),
    () => store.leases.acquire('main', processOwner('me')),
    () => store.lineage.fork('main'),
    () => store.inbox.drain('main'),
  ];
  await using _holder = await holdLock(home.db, 60_000);
  asked = 0;
  for (const act of acts) expect(refusal(act).code).toBe('TAPE_LOCKED');
  expect(asked).toBe(0);
});

test('neither the lock nor a writer stopped inside its transaction blocks readers', async () => {
  using home = tempHome();
  home.session('main', user('hello'));
  await using holder = await holdLock(home.db, 60_000);
  holder.child.kill('SIGSTOP');
  using store = openTapeStore(home.db, { readonly: true });
  expect([...store.entries.read('main')].length).toBe(2);
  expect(store.entries.search({ text: 'hello' }).hits.length).toBe(1);
  expect([...store.verify()]).toEqual([]);
});
