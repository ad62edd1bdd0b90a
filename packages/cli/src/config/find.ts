import { lstatSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Home } from '../home.ts';
import type { Io } from '../io.ts';

/** Names of a configuration file, in order of precedence. */
export const configNames = ['tape.config.mts', 'tape.config.mjs', 'tape.config.js'] as const;

/** The path of the configuration file of a directory, of any file type; undefined if it has none. */
export function configIn(dir: string): string | undefined {
  return configNames.map((name) => join(dir, name)).find(isThere);
}

/** Whether the path exists; a dangling link counts. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false;
    throw error;
  }
}

/**
 * The nearest configuration file, from the working directory up to the home directory of the user; else the
 * file beside the tape home.
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
    // The directory does not exist.
    return path;
  }
}

/** The path of the `config.yaml` of a home. */
export function homeConfigFile({ dir }: Pick<Home, 'dir'>): string {
  return join(dir, 'config.yaml');
}
