import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { serverUser } from './postgres-programs.ts';
import { freePort } from './postgres-server.ts';
import { dirIn } from './temp-dir.ts';

/** The newest PostgreSQL that Debian has installed with its server: `pg_dump` reads no server that is newer. */
const installed = '/usr/lib/postgresql';
const [newest] = (existsSync(installed) ? readdirSync(installed) : [])
  .filter((version) => existsSync(join(installed, version, 'bin/initdb')))
  .toSorted((a, b) => Number(b) - Number(a));

/** Whether there is one. */
export const isPostgresInstalled: boolean = newest !== undefined;

/** A server of it, which `run` can run its other programs with: `pg_dump`, `pg_basebackup`. */
export async function installedServer() {
  const dir = dirIn(existsSync('/dev/shm') ? '/dev/shm' : '/tmp');
  chmodSync(dir.path, 0o711);
  const owner = serverUser();
  const run = (name: string, ...args: readonly string[]) =>
    execFileSync(join(installed, newest ?? '', 'bin', name), args, {
      ...owner,
      cwd: '/',
      stdio: 'ignore',
      env: { PGPASSWORD: 'x' },
    });
  const place = (name: string): string => {
    const path = dir.file(name);
    mkdirSync(path, { mode: 0o700 });
    if (owner !== undefined) chownSync(path, owner.uid, owner.gid);
    return path;
  };
  const running = new Set<string>();
  const start = async (data: string): Promise<string> => {
    const port = String(await freePort());
    const flags = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off`;
    run('pg_ctl', '-D', data, '-w', '-o', flags, 'start');
    running.add(data);
    return port;
  };
  const stop = (): void => {
    for (const data of running) run('pg_ctl', '-D', data, '-m', 'immediate', 'stop');
    dir[Symbol.dispose]();
  };
  const data = place('data');
  run('initdb', '-D', data, '--no-sync', '--encoding=UTF8', '-U', 'tapedeck', '--auth=trust');
  const port = await start(data);
  return {
    run,
    place,
    start,
    /** How its programs connect to it. */
    server: ['-h', '127.0.0.1', '-p', port, '-U', 'tapedeck'],
    url: (database: string, at = port) => `postgres://tapedeck@127.0.0.1:${at}/${database}`,
    [Symbol.dispose]: stop,
  };
}
