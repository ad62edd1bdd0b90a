import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Ignore } from 'ignore';

/** The most bytes of a list of patterns. */
const listMax = 1024 * 1024;

/** The patterns of a directory and of those above it, as git reads `.gitignore`: the deepest that is about a path decides. */
export class Ignored {
  /** Where it is, from the top of the walk; empty, or with a slash at its end. */
  readonly #below: string;
  readonly #own: Ignore;
  readonly #above: Ignored | undefined;

  private constructor(below: string, own: Ignore, above: Ignored | undefined) {
    this.#below = below;
    this.#own = own;
    this.#above = above;
  }

  /** Adds the patterns of a file to those above, if it has any. */
  static withFile(
    above: Ignored | undefined,
    file: string,
    { below, make }: { readonly below: string; readonly make: () => Ignore },
  ): Ignored | undefined {
    const text = textOf(file);
    return text === undefined ? above : new Ignored(below, make().add(text), above);
  }

  /** Whether a path is ignored; a directory ends with a slash. */
  has(path: string): boolean {
    const { ignored, unignored } = this.#own.test(path.slice(this.#below.length));
    return ignored || (!unignored && (this.#above?.has(path) ?? false));
  }
}

/** The patterns that count in a directory: those of the top and of all directories down to it. */
export function ignoredAt(top: string, below: readonly string[], make: () => Ignore): Ignored | undefined {
  let found = Ignored.withFile(undefined, join(top, '.git/info/exclude'), { below: '', make });
  found = Ignored.withFile(found, join(top, '.gitignore'), { below: '', make });
  for (const [i] of below.entries()) {
    const path = below.slice(0, i + 1).join('/');
    found = Ignored.withFile(found, join(top, path, '.gitignore'), { below: `${path}/`, make });
  }
  return found;
}

/** The text of a regular file that is no link; undefined without one. */
function textOf(file: string): string | undefined {
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const found = fstatSync(fd);
      if (!found.isFile()) return undefined;
      const bytes = Buffer.alloc(Math.min(found.size, listMax));
      return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0));
    } finally {
      closeSync(fd);
    }
  } catch {
    return undefined;
  }
}
