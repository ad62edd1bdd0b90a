import { type Dirent, readdirSync, realpathSync } from 'node:fs';
import type { Ignore } from 'ignore';
import { Ignored } from './ignored.ts';

/** Where a walk goes. */
export interface WalkPlace {
  /** The real path of the top of the workspace, whose `.gitignore` counts. */
  readonly top: string;
  /** The directory to walk, from there; empty for the top. */
  readonly below: string;
  readonly ignored: Ignored | undefined;
  readonly make: () => Ignore;
}

/**
 * The regular files below a directory that git would not ignore, sorted, each as its path from the top of the workspace.
 * Follows no links, and lists no directory that has become one.
 */
export function* walk({ top, below, ignored, make }: WalkPlace): Generator<string> {
  const names = entriesOf(join(top, below));
  const prefix = below === '' ? '' : `${below}/`;
  for (const entry of names) {
    const { name } = entry;
    if (name === '.git') continue;
    const path = `${prefix}${name}`;
    if (entry.isFile()) {
      if (ignored?.has(path) !== true) yield path;
    } else if (entry.isDirectory() && ignored?.has(`${path}/`) !== true) {
      const file = `${join(top, path)}/.gitignore`;
      const inside = Ignored.withFile(ignored, file, { below: `${path}/`, make });
      yield* walk({ top, below: path, ignored: inside, make });
    }
  }
}

const join = (top: string, below: string) => (below === '' ? top : `${top === '/' ? '' : top}/${below}`);

function entriesOf(path: string): readonly Dirent[] {
  try {
    const names = readdirSync(path, { withFileTypes: true });
    if (realpathSync.native(path) !== path) return [];
    return names.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    // It was removed, or may not be listed.
    return [];
  }
}
