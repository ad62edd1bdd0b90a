import { join } from 'node:path';
import { openTapeStore, type TapeStore, user } from '@tapedeck/tape';
import { openPostgresHome, openPostgresStore } from '@tapedeck/tape/postgres';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { installedServer, isPostgresInstalled } from '../support/installed-postgres.ts';
import { serverPlace } from '../support/postgres.ts';
import { playScript } from '../support/script.ts';
import { openStore, refusal } from '../support/store.ts';

type Home = Pick<Awaited<ReturnType<typeof openPostgresHome>>, 'sessions'>;

/** The heads of all sessions, by id. */
function headsOf({ sessions }: Home): Readonly<Record<string, string>> {
  return Object.fromEntries(sessions.list({ all: true }).map(({ id, headHash }) => [id, headHash]));
}

test('a bundle of a file is taken in by a home on a server, and one of that by a file, with equal heads', async () => {
  using file = openStore();
  await playScript(file as unknown as TapeStore);
  await using place = await serverPlace();
  const home = await place.openHome();
  try {
    await adopt(home, bundleOf(file, 'main', { scope: 'tree' }));
    using back = openTapeStore(':memory:');
    await adopt(back, bundleOf(home, 'main', { scope: 'tree' }));
    expect(Object.keys(headsOf(file)).length).toBe(3);
    expect(headsOf(home)).toEqual(headsOf(file));
    expect(headsOf(back)).toEqual(headsOf(file));
    expect([...home.verify(), ...back.verify()]).toEqual([]);
  } finally {
    home.close();
  }
});

test.runIf(isPostgresInstalled)(
  'a home is dumped by pg_dump and restored by pg_restore with all it has (needs postgresql)',
  async () => {
    using at = await installedServer();
    const { run, server, url } = at;
    const dump = join(at.place('dump'), 'home.dump');
    for (const name of ['deck', 'restored']) run('createdb', ...server, name);
    const home = await openPostgresHome(url('deck'));
    await playScript(home as unknown as TapeStore);
    const before = [headsOf(home), [...home.lineage.read()]];
    home.close();
    run('pg_dump', ...server, '-Fc', '--schema=tapedeck', '-f', dump, 'deck');
    run('pg_restore', ...server, '-d', 'restored', '--exit-on-error', dump);
    const restored = await openPostgresHome(url('restored'));
    try {
      expect([headsOf(restored), [...restored.lineage.read()]]).toEqual(before);
      expect([...restored.verify()]).toEqual([]);
      const { head = 0 } = restored.sessions.find('main') ?? {};
      restored.entries.append('main', [user('It goes on.')]);
      expect(restored.sessions.find('main')?.head).toBe(head + 1);
    } finally {
      restored.close();
    }
  },
);

test.runIf(isPostgresInstalled)(
  'a standby is read and followed as the server that it follows, and refuses who would write (needs postgresql)',
  { timeout: 120_000 },
  async () => {
    using at = await installedServer();
    const { run, server, url } = at;
    run('createdb', ...server, 'deck');
    const home = await openPostgresHome(url('deck'));
    try {
      await playScript(home as unknown as TapeStore);
      const data = join(at.place('standby'), 'data');
      run('pg_basebackup', ...server, '-D', data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync');
      const standby = url('deck', await at.start(data));
      const reading = await openPostgresHome(standby, { access: 'read' });
      try {
        expect(headsOf(reading)).toEqual(headsOf(home));
        expect([...reading.verify()]).toEqual([]);
        const seen = reading.changes();
        home.entries.append('main', [user('News')]);
        const headHash = home.sessions.find('main')?.headHash;
        await expect.poll(() => reading.changes(), { timeout: 10_000 }).not.toBe(seen);
        await expect.poll(() => reading.sessions.find('main')?.headHash).toBe(headHash);
        const refused = { code: 'TAPE_CANNOT_OPEN', data: { reason: 'read-only' } };
        expect(refusal(() => reading.entries.append('main', [user('x')]))).toMatchObject(refused);
        for (const access of ['write', 'create'] as const)
          await expect(openPostgresHome(standby, { access })).rejects.toMatchObject(refused);
        await expect(openPostgresStore(standby)).rejects.toMatchObject(refused);
      } finally {
        reading.close();
      }
    } finally {
      home.close();
    }
  },
);
