import { execFileSync } from 'node:child_process';
import { tail } from '@tapedeck/runtime';
import { assistant, user } from '@tapedeck/tape';
import { openPostgresHome, openPostgresStore } from '@tapedeck/tape/postgres';
import { expect, test } from 'vitest';
import { connected, serverPlace } from '../support/postgres.ts';
import { ownServer } from '../support/postgres-server.ts';
import { slowLink } from '../support/slow-link.ts';
import { fixedSources } from '../support/store.ts';

/** The same address, by which its connections have a name of their own. */
function namedIn(url: string, name: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}application_name=${name}`;
}

/** Ends the connections of a name, as an administrator does, and returns how many there were. */
async function terminate(url: string, name: string): Promise<number> {
  await using client = await connected(url);
  const { rowCount } = await client.query(
    'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = $1',
    [name],
  );
  return rowCount ?? 0;
}

test('a home that waits for changes connects again when its connection was ended, and hears of what was written meanwhile', async () => {
  await using place = await serverPlace();
  await using writer = await place.open();
  await writer.sessions.open('main');
  const home = await openPostgresHome(namedIn(place.url, 'idle_home'));
  try {
    home.sessions.find('main');
    for (let time = 1; time <= 3; time += 1) {
      const seen = home.changes();
      expect(await terminate(place.url, 'idle_home')).toBe(1);
      // It asks nothing: the thread of its connection finds out by itself.
      await writer.entries.append('main', [user(`${time}`)]);
      await expect.poll(() => home.changes() !== seen, { timeout: 10_000 }).toBe(true);
      expect(home.sessions.find('main')?.head).toBe(1 + time);
    }
  } finally {
    home.close();
  }
});

test('a connection that is lost inside an act ends the act, and nothing of it is written', async () => {
  await using place = await serverPlace();
  const name = 'lost_inside';
  const own = fixedSources();
  let isArmed = false;
  const newId = () => {
    if (isArmed) {
      isArmed = false;
      const kill = `const pg = require('pg'); const c = new pg.Client(process.argv[1]);
        c.connect().then(() => c.query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = '${name}'"))
          .then(() => c.end())`;
      execFileSync(process.execPath, ['-e', kill, place.url.replace(/\?.*/, '')]);
      // Longer than the connection takes to be made anew.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
    }
    return own.newId();
  };
  const home = await openPostgresHome(namedIn(place.url, name), { newId });
  try {
    home.sessions.open('main');
    home.entries.append('main', [user('One')]);
    isArmed = true;
    expect(() => home.lineage.fork('main', { name: 'child' })).toThrow(
      expect.objectContaining({ code: 'TAPE_IO' }),
    );
    expect(isArmed).toBe(false);
    expect(home.sessions.find('child')).toBeUndefined();
    home.lineage.fork('main', { name: 'child' });
    expect([...home.verify()]).toEqual([]);
  } finally {
    home.close();
  }
});

test('readers of a store go on when all of its connections are ended, also while no server is there for a moment', async () => {
  await using server = await ownServer();
  await using writer = await openPostgresStore(server.url);
  await writer.sessions.open('main');
  await using link = await slowLink(server.url);
  await using store = await openPostgresStore(link.url);
  const stop = new AbortController();
  const found: number[] = [];
  const reading = (async () => {
    for await (const fresh of tail(store, 'main', { from: 1, signal: stop.signal }))
      if (fresh.type === 'entry') found.push(fresh.entry.seq);
  })();
  await expect.poll(() => found).toEqual([1]);
  link.cut();
  await writer.entries.append('main', [user('Two')]);
  await expect.poll(() => found, { timeout: 10_000 }).toEqual([1, 2]);
  await server.restart();
  await using other = await openPostgresStore(server.url);
  await other.entries.append('main', [assistant('Three')]);
  await expect.poll(() => found, { timeout: 20_000 }).toEqual([1, 2, 3]);
  stop.abort();
  await reading;
});
