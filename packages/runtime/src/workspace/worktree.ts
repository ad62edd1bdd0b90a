import { lstat, readFile, realpath, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { SessionError } from '../errors.ts';
import { tryGit } from './git.ts';
import type { WorkspaceNotes, WorkspacePlace } from './notes.ts';
import type { WorkingTree } from './repository.ts';

/** The directory of worktrees in a home. */
export function worktreesIn(home: string): string {
  return join(home, 'worktrees');
}

/**
 * The worktree of a child, whether or not it exists. Its path contains the child's id, never its name.
 * @throws SESSION_BAD_INPUT when the deck has no home; SESSION_NO_WORKSPACE when it was recorded elsewhere
 */
export async function worktreeOf(
  { home }: Pick<WorkspacePlace, 'home'>,
  { child, worktree, elsewhere }: WorkspaceNotes,
): Promise<WorkingTree> {
  if (home === undefined)
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot use the worktree of '${child.session}': the deck has no home`,
      { data: { session: child.session } },
    );
  const { repository, git } = worktree;
  if (elsewhere)
    throw new SessionError(
      'SESSION_NO_WORKSPACE',
      `cannot use the worktree of '${child.session}': '${repository}' was recorded before this home came here`,
      { data: { session: child.session, repository, git } },
    );
  const top = join(worktreesIn(await realpath(home)), child.id);
  return { top, gitDir: join(git, 'worktrees', child.id), common: git };
}

/** The path of a worktree while it is being removed. */
export function removedPath({ top }: Pick<WorkingTree, 'top'>): string {
  return `${top}.gone`;
}

/** Removes a worktree and git's registration of it, in whatever state they are. */
export async function forget(worktree: WorkingTree, doing: string): Promise<void> {
  const { top, gitDir, common } = worktree;
  await rm(top, { recursive: true, force: true });
  if (await isDirectory(gitDir)) {
    const call = { cwd: common, doing, env: { GIT_DIR: common } };
    await tryGit(call, ['worktree', 'remove', '--force', '--force', '--', top]);
    // If git was killed while it made the worktree, `git worktree remove` does not find it.
    await rm(gitDir, { recursive: true, force: true });
  }
  await rm(removedPath(worktree), { recursive: true, force: true });
}

/** Whether git was killed while it made a worktree: git locks a worktree until it is complete. */
export async function isHalfMade({ gitDir }: Pick<WorkingTree, 'gitDir'>): Promise<boolean> {
  return (await lockOf({ gitDir })) === 'initializing';
}

/** Whether a worktree exists and is complete. */
export async function isWhole({ top, gitDir }: WorkingTree): Promise<boolean> {
  if (!(await isDirectory(top)) || (await isHalfMade({ gitDir }))) return false;
  const noted = await readFile(join(gitDir, 'gitdir'), 'utf8').catch(() => '');
  return resolve(gitDir, noted.replace(/\n$/, '')) === join(top, '.git');
}

/** Why a worktree is locked: '' without a reason, undefined if it is not locked. */
export async function lockOf({ gitDir }: Pick<WorkingTree, 'gitDir'>): Promise<string | undefined> {
  return await readFile(join(gitDir, 'locked'), 'utf8').then(
    (reason) => reason.trim(),
    () => undefined,
  );
}

/** Whether a path is a directory; a link to one is not. */
export async function isDirectory(path: string): Promise<boolean> {
  return await lstat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** The error of a used worktree that is missing or broken, so that its unrecorded changes are unknown. */
export async function noWorkspace(
  doing: string,
  { top, common }: WorkingTree,
  { child, opened }: WorkspaceNotes,
): Promise<SessionError> {
  const why = (await isDirectory(top)) ? `is no longer a worktree of '${common}'` : 'was removed';
  const commit = opened.at(-1)?.commit;
  return new SessionError('SESSION_NO_WORKSPACE', `cannot ${doing}: '${top}' ${why}`, {
    data: { session: child.session, path: top, git: common, ...(commit !== undefined && { commit }) },
  });
}
