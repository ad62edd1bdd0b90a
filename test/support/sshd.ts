import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TempDir } from './temp-dir.ts';

/** An ssh server on this machine, at which the user of the tests may log in with a key of their own. */
export interface Sshd extends AsyncDisposable {
  readonly pid: number;
  /** The URL of a home. */
  url(path: string): string;
  /** The command in the place of ssh: it knows the server, and has the key. */
  readonly ssh: string;
  /** The same with a key that the server does not know, or without its own. */
  readonly strange: { readonly key: string; readonly host: string };
}

/** Where Debian puts it: not on the PATH of users. */
const program = '/usr/sbin/sshd';

/** Says so, once in a file, when its tests cannot be run; a CI fails then, for `.ci/run` installs it. */
export function skipsSshd(what: string): boolean {
  if (existsSync(program)) return false;
  if (process.env.CI === 'true') throw new Error(`cannot test ${what}: there is no sshd`);
  console.warn(`skipped: ${what}; there is no sshd`);
  return true;
}

/** Starts a server with keys of its own in a directory, and waits until it answers. */
export async function startSshd(dir: TempDir): Promise<Sshd> {
  const at = (name: string) => dir.file(name);
  for (const name of ['host', 'user', 'other'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)]);
  const port = await freePort();
  writeFileSync(at('authorized_keys'), readFileSync(at('user.pub')));
  const key = readFileSync(at('host.pub'), 'utf8').split(' ').slice(0, 2).join(' ');
  writeFileSync(at('known_hosts'), `[127.0.0.1]:${port} ${key}\n`);
  writeFileSync(at('nobody'), '');
  writeFileSync(
    at('config'),
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at('host')}`,
      `AuthorizedKeysFile ${at('authorized_keys')}`,
      'PidFile none',
      'UsePAM no',
      'StrictModes no',
      'PermitRootLogin prohibit-password',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'MaxStartups 100',
      '',
    ].join('\n'),
  );
  // The server of root needs an empty directory, which the system makes when it starts its own.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const child = spawn(program, ['-D', '-e', '-f', at('config')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const exited = once(child, 'exit');
  while (!said.includes('Server listening')) {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${said}`);
    await Promise.race([exited, sleep(20)]);
  }
  const ssh = (identity: string, hosts: string) =>
    `ssh -F /dev/null -o IdentitiesOnly=yes -i ${at(identity)} -o UserKnownHostsFile=${at(hosts)} -o StrictHostKeyChecking=yes`;
  return {
    pid: child.pid ?? 0,
    url: (path) => `ssh://${userInfo().username}@127.0.0.1:${port}${path}`,
    ssh: ssh('user', 'known_hosts'),
    strange: { key: ssh('other', 'known_hosts'), host: ssh('user', 'nobody') },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { readonly port: number };
  server.close();
  return port;
}
