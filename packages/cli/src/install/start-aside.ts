import { spawn } from 'node:child_process';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';

/**
 * Starts an import in a process of its own and does not wait for it: the program whose hook this is may end, and its terminal
 * be closed, before the import does. Says nothing, and succeeds whatever happens.
 */
export function startAside({ home }: Pick<Context, 'home'>): number {
  const words = [process.argv[1] ?? '', 'import', '--yes', '--quiet', '--turn'];
  // An address can have a password, and every user sees the words of a process.
  const { server, dir } = home;
  const env = { ...process.env, TAPE_HOME: server?.given ?? dir };
  // The directory of a session may be removed meanwhile.
  const child = spawn(process.execPath, words, { detached: true, stdio: 'ignore', cwd: '/', env });
  child.on('error', () => {});
  child.unref();
  return exit.done;
}
