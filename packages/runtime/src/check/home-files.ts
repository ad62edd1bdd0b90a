import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TapeError } from '@tapedeck/tape';
import { isHomeFile, placeFaults } from '@tapedeck/tape/internal';

/** A file of a home that is not as it should be. */
export interface FileFinding {
  readonly code: 'open-to-others' | 'unknown-file' | 'odd-place';
  readonly session: null;
  readonly path: string;
  readonly message: string;
  readonly fixable: boolean;
}

/** The directories of a home. */
const directories: readonly string[] = ['run', 'worktrees', 'logs', 'remotes', 'sources.jsonl.ends'];

/** Finds files in a home that are no files of a home, and those that other users can read. `home`: its directory. */
export function* examineFiles(home: string): Generator<FileFinding> {
  for (const fault of placeFaults(home))
    yield {
      code: 'odd-place',
      session: null,
      path: home,
      message: `of the home '${home}': ${fault}`,
      fixable: false,
    };
  const inside = directories.flatMap((dir) => namesIn(home, dir));
  // Raw traffic has a directory for each session.
  const traffic = inside.filter((name) => name.startsWith('logs/')).flatMap((dir) => namesIn(home, dir));
  for (const name of ['.', ...list(home), ...inside, ...traffic]) {
    const path = join(home, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    // Processes rewrite the list of active runs all the time: a draft may be gone by now.
    if (stat === undefined) continue;
    const isStray =
      !isHomeFile(name) || stat.isSymbolicLink() || (directories.includes(name) && !stat.isDirectory());
    if (name !== '.' && isStray)
      yield {
        code: 'unknown-file',
        session: null,
        path,
        message: `'${path}' is not a file of a tape home`,
        fixable: false,
      };
    else if ((stat.mode & 0o077) !== 0)
      yield {
        code: 'open-to-others',
        session: null,
        path,
        message: `others can read '${path}'`,
        fixable: true,
      };
  }
}

const graphAside = 'session_graph.jsonl.aside-';

/** The graph files that were set aside: what follows `aside-` in their names. */
export function asidesIn(home: string): readonly string[] {
  return list(home)
    .filter((name) => name.startsWith(graphAside))
    .map((name) => name.slice(graphAside.length))
    .sort();
}

/** The files in a directory of a home; none when the directory does not exist. */
function namesIn(home: string, dir: string): string[] {
  const path = join(home, dir);
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return list(path).map((name) => `${dir}/${name}`);
}

/** @throws TAPE_CANNOT_OPEN when the disk fails */
function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (cause) {
    throw new TapeError(
      'TAPE_CANNOT_OPEN',
      `cannot list the files of '${dir}': ${(cause as Error).message}`,
      {
        data: { dir },
        cause,
      },
    );
  }
}
