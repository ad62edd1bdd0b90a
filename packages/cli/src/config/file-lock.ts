import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, renameSync, rmdirSync, rmSync, type Stats } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../errors/kinds.ts';

/** A lock on a file that this process has. */
export interface FileLock {
  /** Whether it still is this process's: one that was stopped for long loses it. */
  isHeld(): boolean;
  release(): void;
}

const pollMs = 10;

/** A holder that lives gives its lock another time before this one is over; an older lock is the remains of a killed process. */
const staleMs = 10_000;

/** Who holds a lock needs it for milliseconds. */
const patienceMs = 15_000;

/**
 * Takes the lock on a file: an empty directory beside it, which Claude Code takes for its settings, too, as other programs of
 * Node do (`proper-lockfile`). One that a killed process has left is taken away.
 * @param act what the user wants, for the error: `record trust`
 * @throws ConfigError when another process keeps the lock
 */
export async function lockFile(file: string, act: string): Promise<FileLock> {
  const path = `${file}.lock`;
  const from = performance.now();
  // The clock of another machine may have given its time: one that stays the same for long is no better.
  let seen: { readonly lock: Stats; readonly since: number } | undefined;
  for (;;) {
    try {
      mkdirSync(path, { mode: 0o700 });
      return held(path);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== 'EEXIST') throw new Error(`cannot ${act}: ${message}`, { cause: error });
    }
    const lock = lstatSync(path, { throwIfNoEntry: false });
    const now = performance.now();
    if (lock === undefined) continue;
    if (seen === undefined || !isSame(seen.lock, lock)) seen = { lock, since: now };
    const isLeft = Date.now() - lock.mtimeMs > staleMs || now - seen.since > staleMs;
    if (isLeft && isTakenAway(path, lock)) continue;
    if (isLeft || now - from > patienceMs)
      throw new ConfigError('CLI_BAD_CONFIG', `cannot ${act}: another process has the lock '${path}'`, {
        data: { lock: path },
      });
    await sleep(pollMs);
  }
}

function held(path: string): FileLock {
  const own = lstatSync(path);
  const isHeld = () => {
    const now = lstatSync(path, { throwIfNoEntry: false });
    return now !== undefined && isSame(own, now);
  };
  return {
    isHeld,
    release: () => {
      try {
        if (isHeld()) rmdirSync(path);
      } catch {
        // It is taken away later, as one that was left.
      }
    },
  };
}

function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev && one.mtimeMs === other.mtimeMs;
}

/** Takes a lock away that was left, unless another process does; false where that cannot be, as of one with something in it. */
function isTakenAway(path: string, left: Stats): boolean {
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
  // Another process may have been faster, and this is its own lock.
  const isOther = !isSame(lstatSync(aside), left);
  try {
    if (isOther) renameSync(aside, path);
    else if (left.isDirectory()) rmdirSync(aside);
    // An earlier version of this command made a file.
    else rmSync(aside);
    return true;
  } catch {
    if (!isOther) renameSync(aside, path);
    return false;
  }
}
