import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The program of each system that opens an address, with the words before it. */
const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...(readonly string[])]>>> = {
  darwin: ['open'],
  // `start` is a command of the shell.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/**
 * Has the system open an address in the browser of its user, without a shell.
 * @throws Error when there is no such program
 */
export async function openBrowser(url: string): Promise<void> {
  const [program, ...words] = openers[process.platform] ?? ['xdg-open'];
  const child = spawn(program, [...words, url], { stdio: 'ignore', detached: true });
  await once(child, 'spawn');
  child.on('error', () => {});
  child.unref();
}
