import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { serverUser } from './postgres-programs.ts';
import { freePort } from './postgres-server.ts';
import { dirIn } from './temp-dir.ts';

const program = '/usr/sbin/pgbouncer';

/** Whether Debian's PgBouncer is installed. */
export const hasPgBouncer: boolean = existsSync(program);

/** A real PgBouncer before a database. It has a name of its own for each way to use it, such as `pool_mode=session`. */
export async function pgBouncer(url: string, ways: Readonly<Record<string, string>>) {
  const { hostname, port: behind, username, password, pathname } = new URL(url);
  const port = await freePort();
  const dir = dirIn('/tmp');
  chmodSync(dir.path, 0o711);
  const [user, word] = [decodeURIComponent(username), decodeURIComponent(password)];
  const database = `host=${hostname} port=${behind} dbname=${pathname.slice(1)} user=${user} password='${word}'`;
  const file = dir.file('pgbouncer.ini');
  const lines = [
    '[databases]',
    ...Object.entries(ways).map(([name, way]) => `${name} = ${database} ${way}`),
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const pooler = spawn(program, [file], { ...serverUser(), cwd: '/', stdio: 'ignore' });
  const ended = once(pooler, 'exit');
  while (!(await answers(port))) {
    if (pooler.exitCode !== null) throw new Error('PgBouncer does not start');
    await setTimeout(20);
  }
  return {
    at: (name: string) => Object.assign(new URL(url), { port: String(port), pathname: `/${name}` }).href,
    [Symbol.asyncDispose]: async () => {
      pooler.kill('SIGKILL');
      await ended;
      dir[Symbol.dispose]();
    },
  };
}

async function answers(port: number): Promise<boolean> {
  const socket = createConnection({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
