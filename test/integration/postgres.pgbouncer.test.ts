import { user } from '@tapedeck/tape';
import { openPostgresHome, openPostgresStore } from '@tapedeck/tape/postgres';
import pg from 'pg';
import { expect, test } from 'vitest';
import { hasPgBouncer, pgBouncer } from '../support/pgbouncer.ts';
import { ownServer } from '../support/postgres-server.ts';

/** What the first connection of the server has set after others used it. */
async function pathAt(url: string): Promise<string> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows } = await client.query<{ path: string }>(`SELECT current_setting('search_path') AS path`);
    return rows[0]?.path ?? '';
  } finally {
    await client.end();
  }
}

test.runIf(hasPgBouncer)(
  'PgBouncer is used in its mode session, and refused in its mode transaction (needs pgbouncer)',
  async () => {
    await using server = await ownServer();
    await using pooler = await pgBouncer(server.url, {
      session: 'pool_mode=session',
      shared: 'pool_mode=transaction',
      alone: 'pool_mode=transaction pool_size=1',
    });
    for (const name of ['shared', 'alone'])
      for (const open of [openPostgresStore, openPostgresHome]) {
        await expect(open(pooler.at(name))).rejects.toMatchObject({
          code: 'TAPE_CANNOT_OPEN',
          data: { reason: 'pooler' },
        });
        // Others that get the same connection do not find in it what a home sets.
        expect(await pathAt(pooler.at(name))).toBe('"$user", public');
      }

    const url = `${pooler.at('session')}?schema=team`;
    await using store = await openPostgresStore(url);
    await store.sessions.open('main');
    const before = await store.changes();
    const home = await openPostgresHome(url);
    try {
      home.entries.append('main', [user('x')]);
      await expect.poll(() => store.changes()).not.toBe(before);
      await store.entries.append('main', [user('y')]);
      expect(home.sessions.find('main')?.head).toBe(3);
      expect([...home.verify()]).toEqual([]);
    } finally {
      home.close();
    }
  },
);
