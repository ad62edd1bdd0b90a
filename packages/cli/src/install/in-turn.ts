import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeLock } from '@tapedeck/tape/internal';
import { exit } from '../exit.ts';
import type { Home } from '../home.ts';

/** How often the import that waits looks whether it is its turn. */
const pollMs = 100;

/**
 * Runs an import that a hook has started when no other such import runs. Where one waits already it does nothing: that
 * one looks for transcripts later, and finds what is there now. So many sessions that end at once are read once or twice,
 * and not by each import.
 */
export async function inTurn({ dir }: Pick<Home, 'dir'>, act: () => Promise<number>): Promise<number> {
  // The first import of all makes the home.
  if (!existsSync(dir)) return await act();
  const run = join(dir, 'run');
  mkdirSync(run, { recursive: true, mode: 0o700 });
  const next = takeLock(join(run, 'import.next'));
  if (next === undefined) return exit.done;
  let turn = takeLock(join(run, 'import'));
  while (turn === undefined) {
    await sleep(pollMs);
    turn = takeLock(join(run, 'import'));
  }
  next.release();
  try {
    return await act();
  } finally {
    turn.release();
  }
}
