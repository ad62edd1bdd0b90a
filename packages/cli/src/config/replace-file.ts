import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../errors/kinds.ts';

/**
 * Replaces a file with the text that `change` returns, atomically, and resolves once it is on disk; `undefined` changes
 * nothing. The draft of the new file is the lock against other processes. Keeps the mode of a file.
 * @param act what the user wants, for the error: `record trust`
 * @throws ConfigError when another process keeps the lock
 */
export async function replaceFile(
  file: string,
  act: string,
  change: () => string | undefined | Promise<string | undefined>,
): Promise<void> {
  const draft = `${file}.lock`;
  const fd = await lock(draft, act);
  let done = false;
  try {
    const text = await change();
    if (text !== undefined) {
      try {
        write(fd, file, text);
        renameSync(draft, file);
      } catch (cause) {
        throw new Error(`cannot ${act}: ${(cause as Error).message}`, { cause });
      }
      done = true;
      syncDirectory(dirname(file));
    }
  } finally {
    closeSync(fd);
    if (!done) rmSync(draft, { force: true });
  }
}

function write(fd: number, file: string, text: string): void {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode !== undefined) fchmodSync(fd, mode & 0o777);
  writeFileSync(fd, text);
  fsyncSync(fd);
}

const pollMs = 10;

/** A holder needs the lock for milliseconds; an older lock is the remains of a killed process. */
const leftBehindMs = 10_000;

async function lock(path: string, act: string): Promise<number> {
  const from = performance.now();
  for (;;) {
    try {
      return openSync(path, 'wx', 0o600);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== 'EEXIST') throw new Error(`cannot ${act}: ${message}`, { cause: error });
    }
    const since = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - since > leftBehindMs || performance.now() - from > leftBehindMs)
      throw new ConfigError('CLI_BAD_CONFIG', `cannot ${act}: another process has the lock '${path}'`, {
        data: { lock: path },
      });
    await sleep(pollMs);
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
