import { mkdirSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** The directory of what a state directory says of homes. */
export function homesIn(state: string): string {
  return join(state, 'homes');
}

/**
 * Makes that directory. It makes no home directory for a user who has none.
 * @throws a file system error when the state directory cannot be written
 */
export function makeHomes(state: string): void {
  statSync(dirname(dirname(state)));
  mkdirSync(homesIn(state), { recursive: true, mode: 0o700 });
}

/** The files in it with an ending. */
export function filesIn(state: string, ending: string): readonly string[] {
  const dir = homesIn(state);
  try {
    return readdirSync(dir).flatMap((name) => (name.endsWith(ending) ? [join(dir, name)] : []));
  } catch {
    return [];
  }
}

/** The JSON of a file; undefined without one, and for a file that other users can write. */
export function readOwn(file: string): unknown {
  try {
    const { mode, uid } = statSync(file);
    const own = process.getuid?.() ?? uid;
    if ((uid !== own && uid !== 0) || (mode & 0o022) !== 0) return undefined;
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** The real path of a directory, also of one that is not made yet. */
export function realPath(dir: string): string {
  try {
    return realpathSync(dir);
  } catch {
    const above = dirname(dir);
    return above === dir ? dir : join(realPath(above), basename(dir));
  }
}
