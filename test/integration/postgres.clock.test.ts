import { openPostgresStore } from '@tapedeck/tape/postgres';
import { afterEach, expect, test, vi } from 'vitest';
import { serverPlace } from '../support/postgres.ts';
import { slowLink } from '../support/slow-link.ts';

const ttlMs = 10_000;
const owner = { id: 'owner' };

/** The clocks of this machine, which a test can set and let run. */
function clocks() {
  const [now, running] = [Date.now.bind(Date), performance.now.bind(performance)];
  let [ahead, passed] = [0, 0];
  vi.spyOn(Date, 'now').mockImplementation(() => now() + ahead + passed);
  vi.spyOn(performance, 'now').mockImplementation(() => running() + passed);
  return {
    /** Someone sets the clock, as a time server does. */
    set: (ms: number) => {
      ahead += ms;
    },
    /** Time passes on this machine. */
    pass: (ms: number) => {
      passed += ms;
    },
    /** How long a lease lives by the clock of the server, which runs on this machine and is not set. */
    lives: ({ expiresAt }: { readonly expiresAt: number }) => expiresAt - now(),
  };
}

afterEach(() => {
  vi.restoreAllMocks();
});

/** A lease that lives as long as its request says, but for what a busy machine takes. */
const right = (lives: number) => lives > ttlMs - 9_000 && lives < ttlMs + 9_000;

test('leases count by the time of the server, also when the clock of this machine is set while a store is open', async () => {
  await using place = await serverPlace();
  const clock = clocks();
  clock.set(-3_600_000);
  await using store = await place.open();
  using waiting = await place.openHome();
  const { set, lives } = clock;
  for (const session of ['first', 'second', 'third', 'fourth']) {
    await store.sessions.open(session);
    const lease = await store.leases.acquire(session, owner, { ttlMs });
    expect(right(lives(lease))).toBe(true);
    set(1_800_000);
    expect(right(lives(await store.leases.extend(lease, { ttlMs })))).toBe(true);
    const { id } = waiting.sessions.open(`${session}-too`);
    expect(right(lives(waiting.leases.acquire(id, owner, { ttlMs })))).toBe(true);
    expect(waiting.leases.list().map((one) => one.session)).toContain(session);
    set(session === 'second' ? -7_200_000 : 60_000);
  }
});

test('a store asks the server for its time once in a minute', async () => {
  await using place = await serverPlace();
  await using link = await slowLink(place.url);
  const { pass, set } = clocks();
  await using store = await openPostgresStore(link.url);
  await store.sessions.open('main');
  const tripsOf = async () => {
    const before = link.trips;
    await store.sessions.find('main');
    return link.trips - before;
  };
  await tripsOf();
  const usual = await tripsOf();
  pass(40_000);
  // A clock that runs a little fast is no clock that was set.
  set(500);
  expect(await tripsOf()).toBe(usual);
  pass(21_000);
  expect(await tripsOf()).toBe(usual + 1);
  expect(await tripsOf()).toBe(usual);
});
