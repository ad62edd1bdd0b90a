import { randomUUID } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Lease, note, processOwner, type Ref } from '@tapedeck/tape';
import type { WorktreeRequest } from '@tapedeck/tape/store';
import { runPoint } from '../crash-point.ts';
import { SessionError } from '../errors.ts';
import { hold } from '../lease/hold.ts';
import { gitLine, onDisk } from './git.ts';
import { isInUse, readNotes, type WorkspaceNotes, type WorkspacePlace, workspaceOpened } from './notes.ts';
import { findRepository, type Repository, type WorkingTree, withSnapshot } from './repository.ts';
import { forget, isDirectory, isHalfMade, isWhole, noWorkspace, worktreeOf } from './worktree.ts';

/** Where a child works. */
export interface WorkspaceOptions {
  /** `shared` (default): in its parent's files; `worktree`: in its own git worktree. */
  readonly workspace?: 'shared' | 'worktree';
  /** A directory of the repository; default: the parent's worktree, or else the working directory. */
  readonly repository?: string;
}

/**
 * Adds to a fork request the worktree that its options request.
 * @throws SESSION_NO_REPOSITORY, SESSION_NO_GIT, SESSION_BAD_INPUT when the deck has no home
 */
export async function withWorktree<T extends object>(
  place: WorkspacePlace,
  parent: Ref,
  { workspace = 'shared', repository, ...request }: T & WorkspaceOptions,
): Promise<Omit<T, keyof WorkspaceOptions> & { readonly worktree?: WorktreeRequest }> {
  if (workspace === 'shared') return request;
  const doing = `fork '${parent}' with a worktree`;
  if (place.home === undefined)
    throw new SessionError('SESSION_BAD_INPUT', `cannot ${doing}: the deck has no home`);
  const dir = repository ?? (await openWorktree(place, parent)) ?? process.cwd();
  const { top, common } = await findRepository(dir, doing);
  return { ...request, worktree: { repository: top, git: common } };
}

/** The directory of a child's worktree, if it exists. */
export async function workspaceOf(place: WorkspacePlace, child: Ref): Promise<string | undefined> {
  const notes = await readNotes(place.store, child);
  if (notes === undefined || notes.elsewhere || place.home === undefined) return undefined;
  const { top } = await worktreeOf(place, notes);
  return (await isDirectory(top)) ? top : undefined;
}

/**
 * The directory of a child's worktree; makes the worktree if necessary. A new one has the state of the
 * repository when it is made, with uncommitted and untracked files; the repository's index and files are not
 * touched. The same child gets the same worktree again; a child that continues after a merge gets one with
 * its earlier work. Undefined for a session without a worktree. `lease`: the caller holds the child's lease.
 * @throws SESSION_NO_REPOSITORY, SESSION_NO_GIT, SESSION_WORKSPACE_FAILED; SESSION_NO_WORKSPACE when it was
 * removed with unrecorded changes; SESSION_BUSY when another process does not finish making it in time
 */
export async function openWorktree(
  place: WorkspacePlace,
  child: Ref,
  { lease }: { readonly lease?: Lease } = {},
): Promise<string | undefined> {
  const notes = await readNotes(place.store, child);
  if (notes === undefined) return undefined;
  if (lease !== undefined) return await openHeld(place, notes, lease);
  for (const deadline = performance.now() + openMaxMs; ; ) {
    const now = (await readNotes(place.store, child)) ?? notes;
    if (isInUse(now)) return await openHeld(place, now, undefined);
    try {
      const held = await hold(place.store, now.child.id, { owner: processOwner(`open:${randomUUID()}`) });
      try {
        return await openHeld(place, (await readNotes(place.store, child)) ?? now, held.lease);
      } finally {
        await held.release();
      }
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'SESSION_BUSY' || performance.now() > deadline) throw error;
      await sleep(pollMs);
    }
  }
}

/** How long to wait for another process that makes the worktree, in milliseconds. */
const openMaxMs = 60_000;
const pollMs = 20;

async function openHeld(
  place: WorkspacePlace,
  notes: WorkspaceNotes,
  lease: Lease | undefined,
): Promise<string> {
  const { child, worktree, opened, closed } = notes;
  const doing = `open the worktree of '${child.session}'`;
  const tree = await worktreeOf(place, notes);
  const isThere = opened.length > 0 && (await isWhole(tree));
  if (isInUse(notes)) {
    if (isThere) return tree.top;
    throw await noWorkspace(doing, tree, notes);
  }
  const [before, last] = [opened.at(-1), closed.at(-1)];
  const isKept = isThere && before !== undefined && last !== undefined;
  // A half-made worktree of a killed process was never in use and can go; any other directory is refused.
  if (!isKept && opened.length > 0 && (await isDirectory(tree.top)) && !(await isHalfMade(tree)))
    throw await noWorkspace(doing, tree, notes);
  // A recorded worktree that was not removed is reused as it is.
  const at = isKept
    ? { ...before, tree: last.artifact.tree }
    : await onDisk(doing, () => make(tree, notes, doing));
  runPoint('workspace/created');
  const { repository } = worktree;
  const state = { repository, path: `worktrees/${child.id}`, commit: at.commit, tree: at.tree };
  await place.store.entries.append(child.id, [note(workspaceOpened, state)], { lease });
  runPoint('workspace/opened');
  return tree.top;
}

/** The start of a worktree: a commit, and its tree. */
interface Made {
  readonly commit: string;
  readonly tree: string;
}

/** Makes a worktree; removes any remains of an earlier one. */
async function make(tree: WorkingTree, notes: WorkspaceNotes, doing: string): Promise<Made> {
  // The repository of a child that continues may be gone, as that of a removed worktree.
  const repository = notes.closed.length === 0 ? await recordedRepository(tree, notes, doing) : undefined;
  await forget(tree, doing);
  const at =
    repository === undefined
      ? await stateLeft(tree, notes, doing)
      : await stateOf(repository, { tree, notes, doing });
  for (const dir of [dirname(tree.top), tree.top]) {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await chmod(dir, 0o700); // The umask takes bits from the mode.
  }
  const call = { cwd: tree.top, doing, env: { GIT_DIR: tree.common } };
  await gitLine(call, 'worktree', 'add', '--detach', '--', tree.top, at.commit);
  if (!(await isWhole(tree)))
    throw new SessionError(
      'SESSION_WORKSPACE_FAILED',
      `cannot ${doing}: git did not register it as '${tree.gitDir}'`,
    );
  return at;
}

/**
 * The repository that a tape names. Its git directory is the recorded one: git runs with the settings in it.
 * @throws SESSION_NO_REPOSITORY, SESSION_NO_GIT
 */
async function recordedRepository(
  { common }: WorkingTree,
  { worktree: { repository: dir } }: WorkspaceNotes,
  doing: string,
): Promise<Repository> {
  const found = await findRepository(dir, doing);
  if (found.common === common) return found;
  throw new SessionError(
    'SESSION_NO_REPOSITORY',
    `cannot ${doing}: the git directory of '${dir}' is '${found.common}', and not '${common}', as recorded`,
    { data: { dir, git: found.common, recorded: common } },
  );
}

/** The state of the repository's files: its HEAD, or a commit on top of it with the uncommitted changes. */
async function stateOf(
  repository: Repository,
  { tree: { top }, notes: { child }, doing }: { tree: WorkingTree; notes: WorkspaceNotes; doing: string },
): Promise<Made> {
  const home = dirname(dirname(top));
  return await withSnapshot(repository, { doing, without: home, keep: true }, async ({ tree, call }) => {
    if (tree === (await gitLine(call, 'rev-parse', `${repository.head}^{tree}`)))
      return { commit: repository.head, tree };
    const message = `Uncommitted changes before ${child.session}`;
    return { commit: await gitLine(call, 'commit-tree', '-p', repository.head, '-m', message, tree), tree };
  });
}

/** The state in which the child left its worktree. */
async function stateLeft({ common }: WorkingTree, notes: WorkspaceNotes, doing: string): Promise<Made> {
  const { child, opened, closed } = notes;
  const tree = closed.at(-1)?.artifact.tree ?? '';
  const parents = opened.slice(-1).flatMap(({ commit }) => ['-p', commit]);
  const call = { cwd: common, doing, env: { GIT_DIR: common } };
  return {
    commit: await gitLine(call, 'commit-tree', ...parents, '-m', `Work of ${child.session}`, tree),
    tree,
  };
}
