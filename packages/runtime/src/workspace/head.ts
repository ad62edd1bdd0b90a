import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** The commit and branch that are checked out in a directory. */
export interface GitHead {
  /** The commit: 40 or 64 hex digits. Absent in a repository without one, or where it is unknown. */
  readonly head?: string;
  /** Absent for a detached head. */
  readonly branch?: string;
}

/** A larger file is no `HEAD`, and packed references of that size are not worth the time of a run. */
const headBytes = 4_096;
const packedBytes = 4_194_304;

/**
 * Reads what is checked out in a directory or above it, from the files of git and without git; undefined outside of a
 * repository. Never fails.
 */
export function gitHead(directory: string): GitHead | undefined {
  for (let at = resolve(directory); ; at = dirname(at)) {
    const git = gitDirectory(at);
    if (git !== undefined) return headIn(git);
    if (dirname(at) === at) return undefined;
  }
}

/** The git directory of a working tree: `.git`, or where that file says for a worktree and a submodule. */
function gitDirectory(tree: string): string | undefined {
  const path = join(tree, '.git');
  if (textOf(join(path, 'HEAD'), headBytes) !== undefined) return path;
  const place = /^gitdir: (.+)$/m.exec(textOf(path, headBytes) ?? '')?.[1];
  return place === undefined ? undefined : resolve(tree, place.trimEnd());
}

function headIn(git: string): GitHead | undefined {
  const head = textOf(join(git, 'HEAD'), headBytes)?.trim();
  if (head === undefined) return undefined;
  if (isCommit(head)) return { head };
  const ref = /^ref: (refs\/[^\0\n]+)$/.exec(head)?.[1];
  // A name with `..` would lead out of the directory.
  if (ref === undefined || ref.split('/').includes('..')) return {};
  const shared = textOf(join(git, 'commondir'), headBytes)?.trim();
  const common = shared === undefined ? git : resolve(git, shared);
  const commit = looseRef(git, ref) ?? looseRef(common, ref) ?? packedRef(common, ref);
  const branch = ref.startsWith('refs/heads/') ? ref.slice('refs/heads/'.length) : undefined;
  return { ...(commit !== undefined && { head: commit }), ...(branch !== undefined && { branch }) };
}

function looseRef(git: string, ref: string): string | undefined {
  const text = textOf(join(git, ref), headBytes)?.trim();
  return text !== undefined && isCommit(text) ? text : undefined;
}

function packedRef(git: string, ref: string): string | undefined {
  const text = textOf(join(git, 'packed-refs'), packedBytes);
  const line = text?.split('\n').find((one) => one.endsWith(` ${ref}`));
  const commit = line?.slice(0, line.indexOf(' '));
  return commit !== undefined && isCommit(commit) ? commit : undefined;
}

function isCommit(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

/**
 * The text of a small regular file; undefined for anything else. Read at once: of files this small, waiting for each costs
 * a run more than reading all of them. A pipe is not waited for.
 */
function textOf(path: string, bytesMax: number): string | undefined {
  // Most of the places that are looked at have no file, and an exception for each would cost more than the others.
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(file);
    return stat.isFile() && stat.size <= bytesMax ? readFileSync(file, 'utf8') : undefined;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
