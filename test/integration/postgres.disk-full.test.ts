import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TapeError, user } from '@tapedeck/tape';
import { openPostgresHome, openPostgresStore } from '@tapedeck/tape/postgres';
import pg from 'pg';
import { expect, test } from 'vitest';
import { mountPoint, unmount } from '../support/mounts.ts';
import { serverUser } from '../support/postgres-programs.ts';
import { ownServer } from '../support/postgres-server.ts';
import { dirIn } from '../support/temp-dir.ts';

/** A disk of 32 MiB that the server may write, mounted until the block ends; undefined where nothing can be mounted. */
function smallDisk() {
  const dir = dirIn('/tmp');
  const path = mountPoint(dir.path, 'disk');
  mkdirSync(path);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=32m,mode=755', 'tmpfs', path]).status !== 0) {
    dir[Symbol.dispose]();
    return undefined;
  }
  execFileSync('chmod', ['755', dir.path]);
  const place = join(path, 'space');
  mkdirSync(place, { mode: 0o700 });
  const owner = serverUser();
  if (owner !== undefined) chownSync(place, owner.uid, owner.gid);
  return {
    path,
    place,
    [Symbol.dispose]: () => {
      unmount(path);
      dir[Symbol.dispose]();
    },
  };
}

using probe = smallDisk();
const canMount = probe !== undefined;

test.runIf(canMount)(
  'an append that a full disk of the server stops is an error, and the home goes on once there is room (needs mounts)',
  { timeout: 120_000 },
  async () => {
    await using server = await ownServer();
    using disk = smallDisk();
    if (disk === undefined) return;
    const ballast = join(disk.path, 'ballast');
    writeFileSync(ballast, Buffer.alloc(10 << 20));
    const client = new pg.Client(server.url);
    await client.connect();
    await client.query(`CREATE TABLESPACE small LOCATION '${disk.place}'`);
    await client.query('CREATE DATABASE small TABLESPACE small');
    const url = server.url.replace(/deck$/, 'small');
    const store = await openPostgresStore(url);
    const home = await openPostgresHome(url);
    try {
      await store.sessions.open('main');
      const acknowledged: string[] = [];
      const append = async (by: 'store' | 'home'): Promise<void> => {
        const key = `k${acknowledged.length}`;
        // Random bytes, which the server cannot make smaller.
        const drafts = [user(`${key} ${randomBytes(150_000).toString('base64')}`)];
        const done =
          by === 'store'
            ? await store.entries.append('main', drafts, { key })
            : home.entries.append('main', drafts, { key });
        acknowledged.push(`u:${key}`);
        expect(done.to).toBe(acknowledged.length + 1);
      };
      const refused: unknown[] = [];
      while (refused.length < 6)
        try {
          await append(acknowledged.length % 2 === 0 ? 'store' : 'home');
        } catch (error) {
          refused.push(error);
        }
      for (const error of refused) {
        expect(error).toBeInstanceOf(TapeError);
        expect(error).toMatchObject({ code: 'TAPE_IO', data: { reason: 'failed' } });
      }
      const keys = async () =>
        (await Array.fromAsync(store.entries.read('main', { kind: 'message' }))).map(({ key }) => key);
      expect(await keys()).toEqual(acknowledged);
      rmSync(ballast);
      await append('store');
      await append('home');
      expect(await keys()).toEqual(acknowledged);
      expect([...home.verify()]).toEqual([]);
    } finally {
      home.close();
      await store[Symbol.asyncDispose]();
      await client.query('DROP DATABASE small WITH (FORCE)');
      await client.query('DROP TABLESPACE small');
      await client.end();
    }
  },
);
