import { Readable } from 'node:stream';
import { isatty } from 'node:tty';
import type { Io } from '../io.ts';

/** How often it is looked whether the terminal and the parent are there, in milliseconds. */
const lookMs = 500;

/** What started this process: its parent, and the descriptors that are terminals. */
export interface Starter {
  readonly parent: number;
  readonly terminals: readonly number[];
}

/** What started this process, as long as it is there. */
export function starter(): Starter {
  return { parent: process.ppid, terminals: [0, 1, 2].filter((fd) => isatty(fd)) };
}

/**
 * Resolves when what started this process is gone: with Ctrl-C, when a pipe at stdin ends, the terminal is closed, or the
 * parent has ended. A terminal is not read: a process in the background would be stopped.
 */
export async function untilOver(
  io: Pick<Io, 'signal' | 'stdin' | 'stdinIsPipe'>,
  { parent, terminals }: Starter,
): Promise<void> {
  const { signal } = io;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  if (signal.aborted) resolve();
  const looking = setInterval(() => {
    if (process.ppid !== parent || !terminals.every((fd) => isatty(fd))) resolve();
  }, lookMs);
  const input = io.stdinIsPipe ? Readable.from(io.stdin, { objectMode: false }) : undefined;
  for (const name of ['end', 'error']) input?.on(name, () => resolve());
  input?.resume();
  try {
    await promise;
  } finally {
    clearInterval(looking);
    // The process would wait for what may still come.
    input?.destroy();
  }
}
