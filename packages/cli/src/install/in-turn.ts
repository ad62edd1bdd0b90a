import { hash } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeLock } from '@tapedeck/tape/internal';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';

/** How often the import that waits looks whether it is its turn. */
const pollMs = 100;

/**
 * Runs an import that a hook has started when no other such import runs. Where one waits already that searches the same folders
 * it does nothing: that one looks for transcripts later, and finds what is there now. So many sessions that end at once are read
 * once or twice, and not by each import.
 */
export async function inTurn(
  { home: { dir }, io }: Pick<Context, 'home' | 'io'>,
  act: () => Promise<number>,
): Promise<number> {
  // The first import of all makes the home.
  if (!existsSync(dir)) return await act();
  const run = join(dir, 'run');
  mkdirSync(run, { recursive: true, mode: 0o700 });
  const next = takeLock(join(run, `import.next.${await searchedBy(io)}`));
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

/** Which folders an import searches: the variables of the session whose end started it say where its tool keeps transcripts. */
async function searchedBy(io: Context['io']): Promise<string> {
  const { transcriptTools } = await import('@tapedeck/runtime/import');
  const place = { env: io.env, home: userHome(io) };
  const folders = transcriptTools.flatMap((tool) => tool.roots(place));
  return hash('sha256', folders.join('\0')).slice(0, 12);
}
