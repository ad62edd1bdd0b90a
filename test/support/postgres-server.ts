import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import pg from 'pg';
import { postgresPrograms, serverUser } from './postgres-programs.ts';
import { dirIn } from './temp-dir.ts';
import { roomIn } from './temp-in-memory.ts';

/**
 * Becomes the server, after it has left a process behind that waits for the end of this one: when its input ends without a
 * word, however that came, it stops the server and removes the directory.
 */
const guarded = `
exec 3<&0
( (
  read -r word <&3 && exit
  kill -INT $$
  for i in $(seq 100); do [ -e "$DIR/data/postmaster.pid" ] || break; sleep 0.1; done
  kill -KILL $$
  rm -rf "$DIR"
) >/dev/null 2>&1 & )
exec "$@" 3<&- </dev/null`;

/** A server of its own. `flags` are made of its directory, once its user may read it. */
export async function ownServer(flags: (dir: string) => readonly string[] = () => []) {
  const programs = postgresPrograms();
  const user = serverUser();
  // In a place that everyone may enter, as the server has a user of its own.
  const dir = dirIn(roomIn('/dev/shm') > 1e9 ? '/dev/shm' : '/tmp');
  const [data, password] = [dir.file('data'), dir.file('password')];
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(password, 'not a secret\n');
  if (user !== undefined) for (const path of [dir.path, data, password]) chownSync(path, user.uid, user.gid);
  const asUser = { ...user, cwd: '/', env: { ...process.env, LC_ALL: 'C', DIR: dir.path } };
  const made = ['--auth=password', '--username=tapedeck', `--pwfile=${password}`, '--encoding=UTF8'];
  execFileSync(programs.initdb, ['-D', data, '--no-sync', '--locale=C', ...made], {
    ...asUser,
    stdio: 'pipe',
  });

  const port = await freePort();
  // What a killed server would leave elsewhere is in its directory.
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'dynamic_shared_memory_type=mmap',
  ];
  const unsafe = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];
  const args = [...settings, ...unsafe].flatMap((setting) => ['-c', setting]);
  const own = flags(data);
  const start = () =>
    started(['-c', guarded, 'sh', programs.postgres, '-D', data, '-p', `${port}`, ...args, ...own], asUser);
  let server = await start();
  const address = `postgres://tapedeck:not%20a%20secret@127.0.0.1:${port}`;
  const client = new pg.Client(`${address}/postgres`);
  await client.connect();
  await client.query('CREATE DATABASE deck');
  await client.end();
  return {
    url: `${address}/deck`,
    restart: async () => {
      await stopped(server);
      server = await start();
    },
    [Symbol.asyncDispose]: async () => {
      await stopped(server);
      dir[Symbol.dispose]();
    },
  };
}

type Server = ReturnType<typeof spawned>;

function spawned(args: readonly string[], options: Readonly<Record<string, unknown>>) {
  return spawn('/bin/sh', args, { ...options, stdio: ['pipe', 'ignore', 'pipe'] });
}

/** Starts a server, and waits until it takes connections. */
async function started(...how: Parameters<typeof spawned>): Promise<Server> {
  const server = spawned(...how);
  let said = '';
  await new Promise<void>((resolve, reject) => {
    server.stderr.on('data', (chunk) => {
      if (said.includes('ready to accept connections')) return;
      said += String(chunk);
      if (said.includes('ready to accept connections')) resolve();
    });
    server.once('error', reject);
    server.once('exit', () => reject(new Error(`the PostgreSQL server of the tests has ended: ${said}`)));
  });
  // Its end is no matter of this process, which may end before.
  for (const one of [server, server.stdin as Socket, server.stderr as Socket]) one.unref();
  return server;
}

async function stopped(server: Server): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  server.ref();
  const ended = once(server, 'exit');
  server.stdin.end('stop\n');
  server.kill('SIGINT');
  await ended;
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => probe.once('listening', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
