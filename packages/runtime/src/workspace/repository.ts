import { copyFile, mkdir, mkdtemp, realpath, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { isAbsolute, join, relative, resolve } from 'node:path';
import { SessionError } from '../errors.ts';
import { type GitCall, git, gitLine, lineOf, onDisk, tryGit } from './git.ts';

/** A working tree of a git repository. */
export interface WorkingTree {
  readonly top: string;
  /** Its own git directory. That of a linked worktree lies inside the common one. */
  readonly gitDir: string;
  /** The git directory that all worktrees of the repository share. */
  readonly common: string;
}

/** A working tree whose repository has a commit. */
export interface Repository extends WorkingTree {
  readonly head: string;
}

/**
 * Finds the repository of a directory.
 * @throws SESSION_NO_REPOSITORY when the directory is in none, in a bare one, or in one without commits;
 * SESSION_NO_GIT
 */
export async function findRepository(dir: string, doing: string): Promise<Repository> {
  const refuse = (why: string) =>
    new SessionError('SESSION_NO_REPOSITORY', `cannot ${doing}: '${dir}' ${why}`, { data: { dir } });
  const cwd = await realpath(resolve(dir)).catch(() => {
    throw refuse('is missing');
  });
  if (!(await stat(cwd)).isDirectory()) throw refuse('is not a directory');
  const ask = async (...args: readonly string[]): Promise<Answer> => {
    const { ok, stdout, stderr } = await tryGit({ cwd, doing }, ['rev-parse', ...args]);
    return ok ? { line: lineOf(stdout) } : { stderr };
  };
  const [top, gitDir, common] = (await placesAtOnce({ cwd, doing })) ?? (await placesOneByOne(ask, refuse));
  const head = await ask('--verify', '--quiet', 'HEAD^{commit}');
  if (head.line === undefined) throw refuse('is in a git repository without commits');
  return { top, gitDir, common, head: head.line };
}

/** The questions for the working tree, its git directory, and the common one. */
const places = ['--show-toplevel', '--absolute-git-dir', '--git-common-dir'] as const;
const absolute = '--path-format=absolute';

type Places = readonly [top: string, gitDir: string, common: string];

/** Asks git once for all: most repositories answer with a line for each. Undefined for the others. */
async function placesAtOnce(call: GitCall): Promise<Places | undefined> {
  const { ok, stdout } = await tryGit(call, ['rev-parse', '--is-inside-work-tree', absolute, ...places]);
  const [inside, top, gitDir, common, ...more] = lineOf(stdout).split('\n');
  const isClear = ok && inside === 'true' && more.length === 0;
  return isClear && top !== undefined && gitDir !== undefined && common !== undefined
    ? [top, gitDir, common]
    : undefined;
}

/** An answer of git: a line, which contains line ends where a path does, or its stderr. */
type Answer =
  | { readonly line: string; readonly stderr?: never }
  | { readonly line?: never; readonly stderr: string };

/** @throws SESSION_NO_REPOSITORY */
async function placesOneByOne(
  ask: (...args: readonly string[]) => Promise<Answer>,
  refuse: (why: string) => SessionError,
): Promise<Places> {
  const inside = await ask('--is-inside-work-tree');
  if (inside.line === undefined) throw refuse(`is not in a git repository: git says '${inside.stderr}'`);
  if (inside.line !== 'true') throw refuse('is not in a working tree of its git repository');
  const [top, gitDir, common] = [
    await ask(absolute, places[0]),
    await ask(absolute, places[1]),
    await ask(absolute, places[2]),
  ];
  if (top.line === undefined || gitDir.line === undefined || common.line === undefined)
    throw refuse(`cannot be used: git says '${top.stderr ?? gitDir.stderr ?? common.stderr}'`);
  return [top.line, gitDir.line, common.line];
}

/**
 * Runs git on a working tree. Ignores the `.git` in it, which any program with write access may have changed.
 */
export function callIn({ top, gitDir }: WorkingTree, doing: string): GitCall {
  return { cwd: top, doing, env: { GIT_DIR: gitDir, GIT_WORK_TREE: top } };
}

/** All files of a working tree at one moment, except ignored ones. */
export interface Snapshot {
  /** Object name of the git tree. */
  readonly tree: string;
  /** Runs git on the working tree with a private index that holds the snapshot. */
  readonly call: GitCall;
  /** A temporary directory for the caller, removed afterwards. */
  readonly dir: string;
}

export interface SnapshotOptions {
  readonly doing: string;
  /** A directory to exclude, even if it lies in the working tree. */
  readonly without?: string;
  /** True: adds the objects to the repository. False: deletes them with the snapshot. */
  readonly keep: boolean;
}

/**
 * Takes a snapshot and passes it to `act`. Touches neither the files of the working tree nor its index.
 * @throws SESSION_WORKSPACE_FAILED, SESSION_NO_GIT; SESSION_NO_REPOSITORY when `without` is the whole working
 * tree
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
    const excluded = excluding(at.top, without, doing);
    // git refuses to exclude what it ignores.
    const isIgnored =
      without !== undefined &&
      excluded.length > 0 &&
      (await tryGit(own, ['check-ignore', '-q', '--', without])).ok;
    await git(own, 'add', '--all', '--', '.', ...(isIgnored ? [] : excluded));
    return await act({ tree: await gitLine(own, 'write-tree'), call: own, dir });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/**
 * Copies the index, which tells git which files are unchanged. Keeps its time: with a newer time, git would
 * treat files changed since as unchanged.
 */
async function copyIndex(from: string, to: string): Promise<void> {
  try {
    const { mtimeMs } = await stat(from);
    await copyFile(from, to);
    const seconds = Math.floor(mtimeMs / 1000);
    await utimes(to, seconds, seconds);
  } catch (error) {
    // A repository with an empty index may have no index file.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Writes new objects to a temporary directory; reads those of the repository. */
function objectsIn(dir: string, common: string): Readonly<Record<string, string>> {
  return {
    GIT_OBJECT_DIRECTORY: join(dir, 'objects'),
    // Quoted, because the path may contain the path separator.
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
