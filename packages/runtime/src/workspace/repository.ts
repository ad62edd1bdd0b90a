import { copyFile, mkdir, mkdtemp, realpath, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { isAbsolute, join, relative, resolve } from 'node:path';
import { SessionError } from '../errors.ts';
import { type GitCall, git, gitLine, lineOf, onDisk, tryGit } from './git.ts';

/** A directory of files under git. */
export interface WorkingTree {
  readonly top: string;
  /** Its own git directory: a linked worktree has one inside the one that all share. */
  readonly gitDir: string;
  /** The git directory that all worktrees of the repository share. */
  readonly common: string;
}

/** A working tree that has a commit to begin with. */
export interface Repository extends WorkingTree {
  readonly head: string;
}

/**
 * The repository that a directory is in.
 * @throws SESSION_NO_REPOSITORY when it is in none, in a bare one, or in one without a commit; SESSION_NO_GIT
 */
export async function findRepository(dir: string, doing: string): Promise<Repository> {
  const refuse = (why: string) =>
    new SessionError('SESSION_NO_REPOSITORY', `cannot ${doing}: '${dir}' ${why}`, { data: { dir } });
  const cwd = await realpath(resolve(dir)).catch(() => {
    throw refuse('is not there');
  });
  if (!(await stat(cwd)).isDirectory()) throw refuse('is not a directory');
  const ask = async (...args: readonly string[]) => {
    const { ok, stdout, said } = await tryGit({ cwd, doing }, ['rev-parse', ...args]);
    return ok ? { line: lineOf(stdout) } : { said };
  };
  const inside = await ask('--is-inside-work-tree');
  if (inside.line === undefined) throw refuse(`is in no git repository: git says '${inside.said}'`);
  if (inside.line !== 'true') throw refuse('is in a git repository that has no working tree there');
  const absolute = '--path-format=absolute';
  const [top, gitDir, common] = [
    await ask(absolute, '--show-toplevel'),
    await ask(absolute, '--absolute-git-dir'),
    await ask(absolute, '--git-common-dir'),
  ];
  if (top.line === undefined || gitDir.line === undefined || common.line === undefined)
    throw refuse(`cannot be used: git says '${top.said ?? gitDir.said ?? common.said}'`);
  const head = await ask('--verify', '--quiet', 'HEAD^{commit}');
  if (head.line === undefined) throw refuse('is in a git repository that has no commit yet');
  return { top: top.line, gitDir: gitDir.line, common: common.line, head: head.line };
}

/** Runs git on a working tree, whatever the `.git` in it says: whoever may write there may have changed it. */
export function callIn({ top, gitDir }: WorkingTree, doing: string): GitCall {
  return { cwd: top, doing, env: { GIT_DIR: gitDir, GIT_WORK_TREE: top } };
}

/** All files of a working tree at one moment, but for those that git ignores. */
export interface Snapshot {
  /** Name of the git tree. */
  readonly tree: string;
  /** Runs git on the working tree with an index that has the snapshot, and that nobody else uses. */
  readonly call: GitCall;
  /** For files of the one who works with it; goes away afterwards. */
  readonly dir: string;
}

export interface SnapshotOptions {
  readonly doing: string;
  /** A directory that is not looked at, even where it lies in the working tree. */
  readonly without?: string;
  /** True: the repository gets the objects. False: they go away with the snapshot. */
  readonly keep: boolean;
}

/**
 * Takes a snapshot and works with it. Neither the files of the working tree nor its index are touched.
 * @throws SESSION_WORKSPACE_FAILED, SESSION_NO_GIT, SESSION_NO_REPOSITORY when nothing is left to look at
 */
export async function withSnapshot<T>(
  at: WorkingTree,
  { doing, without, keep }: SnapshotOptions,
  act: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  const dir = await onDisk(doing, () => mkdtemp(join(tmpdir(), 'tapedeck-index-')));
  try {
    const index = join(dir, 'index');
    await onDisk(doing, async () => {
      await mkdir(join(dir, 'objects'));
      await copyIndex(join(at.gitDir, 'index'), index);
    });
    const { env, ...call } = callIn(at, doing);
    const own = { ...call, env: { ...env, GIT_INDEX_FILE: index, ...(!keep && objectsIn(dir, at.common)) } };
    await git(own, 'add', '--all', '--', '.', ...excluding(at.top, without, doing));
    return await act({ tree: await gitLine(own, 'write-tree'), call: own, dir });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The index tells which files have not changed since; where it is newer than it was, git would believe too much. */
async function copyIndex(from: string, to: string): Promise<void> {
  try {
    const { mtimeMs } = await stat(from);
    await copyFile(from, to);
    const seconds = Math.floor(mtimeMs / 1000);
    await utimes(to, seconds, seconds);
  } catch (error) {
    // A repository of which everything was removed from the index may have none.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** New objects go to a directory of their own; those of the repository are read. */
function objectsIn(dir: string, common: string): Readonly<Record<string, string>> {
  return {
    GIT_OBJECT_DIRECTORY: join(dir, 'objects'),
    // In quotes a path may hold the character that separates paths.
    GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(join(common, 'objects')),
  };
}

function excluding(top: string, without: string | undefined, doing: string): readonly string[] {
  if (without === undefined) return [];
  const path = relative(top, without);
  if (path === '')
    throw new SessionError('SESSION_NO_REPOSITORY', `cannot ${doing}: '${top}' is the tape home itself`, {
      data: { dir: top },
    });
  if (path === '..' || path.startsWith('../') || isAbsolute(path)) return [];
  return [`:(top,exclude,literal)${path}`];
}
