import { lstatSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Home } from '../home.ts';
import type { Io } from '../io.ts';

/** What a configuration file is called; of several in one directory the first is meant. */
export const configNames = ['tape.config.mts', 'tape.config.mjs', 'tape.config.js'] as const;

/** The configuration file of a directory, whatever sort of file it is. */
export function configIn(dir: string): string | undefined {
  return configNames.map((name) => join(dir, name)).find(isThere);
}

/** Whether there is anything of that name, a link to nothing too. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false;
    throw error;
  }
}

/**
 * The nearest configuration file from the working directory upward, as far as the user's own directory; else the one
 * beside the tape home.
 */
export function findConfig({ cwd, env }: Pick<Io, 'cwd' | 'env'>, home: Home): string | undefined {
  const top = realPath(env.HOME === undefined || env.HOME === '' ? homedir() : env.HOME);
  for (let at = cwd; ; at = dirname(at)) {
    const found = configIn(at);
    if (found !== undefined) return found;
    if (at === dirname(at) || realPath(at) === top) return configIn(dirname(home.dir));
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // A directory that is not there is nobody's.
    return path;
  }
}
