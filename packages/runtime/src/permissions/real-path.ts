import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Finds the real path of an absolute path. @throws UnknownPath */
export type RealPath = (path: string) => string;

/** What the texts of paths mean: what relative ones start from, and `~`. */
export interface PathPlace {
  readonly workspace: string | undefined;
  readonly home: string | undefined;
  readonly real: RealPath;
}

/** A path whose place on the disk cannot be known. */
export class UnknownPath extends Error {
  override readonly name = 'UnknownPath';
}

/** The longest path of Linux and macOS, in bytes. */
const pathMax = 4096;
/** How many links Linux follows in one path. */
const linksMax = 40;

/**
 * The real paths that a text can mean to a tool. Most texts mean one. A text with `..` means one to the system, which
 * follows links first, and one to code that joins paths first; `~` and `file:` mean a place to some tools.
 * @throws UnknownPath
 */
export function placesOf(text: string, { workspace, home, real }: PathPlace): readonly string[] {
  if (!isAbsolute(text) && workspace === undefined)
    throw new UnknownPath('it is relative, and the working directory was deleted');
  const written = isAbsolute(text) ? text : `${workspace}/${text}`;
  const meanings = [written];
  if (written.includes('..')) meanings.push(normalize(written));
  if (/^~(?:\/|$)/.test(text) && home !== undefined) meanings.push(`${home}${text.slice(1)}`);
  if (/^file:/i.test(text)) meanings.push(fromUrl(text));
  return [...new Set(meanings.map(real))];
}

/** Finds real paths, each once: all claims and rules of one decision see the same disk. */
export function rememberedPaths(): RealPath {
  const known = new Map<string, string>();
  return (path) => {
    const before = known.get(path);
    if (before !== undefined) return before;
    const found = realPath(path);
    known.set(path, found);
    return found;
  };
}

/**
 * The real path of what exists of an absolute path, and the rest as written. Follows links also where they lead to
 * nothing: a file that is written through one is made at its target.
 * @throws UnknownPath when the path cannot be looked at, or no path can be like that
 */
export function realPath(path: string): string {
  if (Buffer.byteLength(path) > pathMax) throw new UnknownPath(`it is longer than ${pathMax} bytes`);
  if (path.includes('\0')) throw new UnknownPath('it contains a null character');
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw unknown(error);
  }
  return newFile(path) ?? walked(path);
}

/** The path of a file that does not exist, in a directory that does; undefined when it is not that simple. */
function newFile(path: string): string | undefined {
  const name = basename(path);
  if (name === '.' || name === '..' || path.endsWith('/')) return undefined;
  try {
    const directory = realpathSync.native(dirname(path));
    const file = join(directory, name);
    return lstatSync(file, { throwIfNoEntry: false }) === undefined ? file : undefined;
  } catch {
    return undefined;
  }
}

/** Follows a path name by name, as the system does. */
function walked(path: string): string {
  let at = '/';
  let links = 0;
  const left = path.split('/').toReversed();
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      at = dirname(at);
      continue;
    }
    const next = join(at, name);
    const target = targetOf(next);
    if (target === undefined) {
      at = next;
      continue;
    }
    links += 1;
    if (links > linksMax) throw new UnknownPath('it leads through too many links');
    if (isAbsolute(target)) at = '/';
    left.push(...target.split('/').toReversed());
  }
  return at;
}

/** Where a link leads; undefined for what is no link, or does not exist. */
function targetOf(path: string): string | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
      ? readlinkSync(path)
      : undefined;
  } catch (error) {
    // A part of the path is a file.
    if (codeOf(error) === 'ENOTDIR') return undefined;
    throw unknown(error);
  }
}

function fromUrl(text: string): string {
  try {
    return fileURLToPath(text);
  } catch (error) {
    throw unknown(error);
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

function unknown(error: unknown): UnknownPath {
  const code = codeOf(error);
  const why = code === 'ELOOP' ? 'it leads through too many links' : `it cannot be looked at: ${code}`;
  return new UnknownPath(why, { cause: error });
}
