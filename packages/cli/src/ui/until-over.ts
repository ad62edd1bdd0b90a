import { fstatSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Io } from '../io.ts';

/** How often it is looked whether the terminal and the parent are there, in milliseconds. */
const lookMs = 500;

/**
 * Resolves when whoever started this process is gone: with Ctrl-C, when a pipe at stdin ends, the terminal is closed, or the
 * parent has ended. A terminal is not read: a process in the background would be stopped.
 */
export async function untilOver({ signal, stdin }: Pick<Io, 'signal' | 'stdin'>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  if (signal.aborted) resolve();
  const parent = process.ppid;
  const terminals = [0, 1, 2].filter((fd) => isatty(fd));
  const looking = setInterval(() => {
    if (process.ppid !== parent || !terminals.every((fd) => isatty(fd))) resolve();
  }, lookMs);
  const input = isPipe(0) ? stdin[Symbol.asyncIterator]() : undefined;
  const ended = async () => {
    while ((await input?.next())?.done === false);
  };
  if (input !== undefined) ended().then(resolve, () => resolve());
  try {
    await promise;
  } finally {
    clearInterval(looking);
    // The process would wait for what may still come.
    if (input !== undefined) process.stdin.destroy();
  }
}

function isPipe(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isFIFO() || stat.isSocket();
  } catch {
    return false;
  }
}
