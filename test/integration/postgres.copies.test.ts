import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openTapeStore, type TapeStore, user } from '@tapedeck/tape';
import { openPostgresHome } from '@tapedeck/tape/postgres';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { serverPlace } from '../support/postgres.ts';
import { serverUser } from '../support/postgres-programs.ts';
import { freePort } from '../support/postgres-server.ts';
import { playScript } from '../support/script.ts';
import { openStore } from '../support/store.ts';
import { dirIn } from '../support/temp-dir.ts';

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

/** The newest PostgreSQL that Debian has installed with its server: `pg_dump` reads no server that is newer. */
const installed = '/usr/lib/postgresql';
const [newest] = (existsSync(installed) ? readdirSync(installed) : [])
  .filter((version) => existsSync(join(installed, version, 'bin/initdb')))
  .toSorted((a, b) => Number(b) - Number(a));

test.runIf(newest !== undefined)(
  'a home is dumped by pg_dump and restored by pg_restore with all it has (needs postgresql)',
  async () => {
    const program = (name: string) => join(installed, newest ?? '', 'bin', name);
    using dir = dirIn(existsSync('/dev/shm') ? '/dev/shm' : '/tmp');
    chmodSync(dir.path, 0o711);
    const data = dir.file('data');
    mkdirSync(data, { mode: 0o700 });
    const owner = serverUser();
    if (owner !== undefined) chownSync(data, owner.uid, owner.gid);
    const run = (name: string, ...args: readonly string[]) =>
      execFileSync(program(name), args, { ...owner, cwd: '/', stdio: 'ignore', env: { PGPASSWORD: 'x' } });
    const port = String(await freePort());
    run('initdb', '-D', data, '--no-sync', '--encoding=UTF8', '-U', 'tapedeck', '--auth=trust');
    const flags = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off`;
    run('pg_ctl', '-D', data, '-w', '-o', flags, 'start');
    try {
      const server = ['-h', '127.0.0.1', '-p', port, '-U', 'tapedeck'];
      for (const name of ['deck', 'restored']) run('createdb', ...server, name);
      const url = (database: string) => `postgres://tapedeck@127.0.0.1:${port}/${database}`;
      const home = await openPostgresHome(url('deck'));
      await playScript(home as unknown as TapeStore);
      const before = [headsOf(home), [...home.lineage.read()]];
      home.close();
      run('pg_dump', ...server, '-Fc', '--schema=tapedeck', '-f', join(data, 'home.dump'), 'deck');
      run('pg_restore', ...server, '-d', 'restored', '--exit-on-error', join(data, 'home.dump'));
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
    } finally {
      run('pg_ctl', '-D', data, '-m', 'immediate', 'stop');
    }
  },
);
