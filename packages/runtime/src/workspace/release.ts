import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ref, TapeStore } from '@tapedeck/tape';
import { isUlid } from '@tapedeck/tape/store';
import { runPoint } from '../crash-point.ts';
import { messageOf } from '../errors.ts';
import { holdChild } from './close.ts';
import { type GitCall, git } from './git.ts';
import { deliveredTo, isInUse, readNotes, type WorkspaceNotes, type WorkspacePlace } from './notes.ts';
import { type WorkingTree, withSnapshot } from './repository.ts';
import { forget, isDirectory, lockOf, removedPath, worktreeOf, worktreesIn } from './worktree.ts';

/** A worktree that was kept after the merge of its child, and why. */
export interface KeptWorktree {
  readonly path: string;
  readonly why: string;
}

/**
 * Removes the worktree of a merged or discarded child, if all its changes were recorded. Keeps one that has
 * changed since, is locked, or holds other repositories. Never throws: a worktree that cannot be removed is
 * kept.
 */
export async function releaseWorktree(place: WorkspacePlace, child: Ref): Promise<KeptWorktree | undefined> {
  let path = '';
  try {
    const notes = await readNotes(place.store, child);
    if (notes === undefined || place.home === undefined) return undefined;
    const worktree = await worktreeOf(place, notes);
    path = worktree.top;
    const left = await Promise.all([path, removedPath(worktree), worktree.gitDir].map(isDirectory));
    if (!left.includes(true)) return undefined;
    const held = await holdChild(place, notes.child);
    try {
      const why = await release(place, worktree, notes.child.id);
      return why === undefined ? undefined : { path, why };
    } finally {
      await held.release();
    }
  } catch (error) {
    return { path, why: messageOf(error) };
  }
}

/** Removes a worktree, under the child's lease, or returns why it is kept. */
async function release(
  { store }: WorkspacePlace,
  worktree: WorkingTree,
  child: Ref,
): Promise<string | undefined> {
  const notes = await readNotes(store, child);
  if (notes === undefined) return undefined;
  const doing = `remove the worktree of '${notes.child.session}'`;
  const isThere = await isDirectory(worktree.top);
  // If another program removed it, keep git's registration, which still refers to its commits.
  if (!isThere && isInUse(notes)) return undefined;
  const why =
    isThere && notes.opened.length > 0 ? await whyKept(store, worktree, { notes, doing }) : undefined;
  if (why !== undefined) return why;
  runPoint('workspace/before-removal');
  // Renamed first, so that a crash leaves the worktree complete or absent.
  if (isThere) {
    await rm(removedPath(worktree), { recursive: true, force: true });
    await rename(worktree.top, removedPath(worktree));
  }
  runPoint('workspace/moved');
  await forget(worktree, doing);
  runPoint('workspace/removed');
  return undefined;
}

async function whyKept(
  store: TapeStore,
  worktree: WorkingTree,
  { notes, doing }: { readonly notes: WorkspaceNotes; readonly doing: string },
): Promise<string | undefined> {
  const last = notes.closed.at(-1);
  if (last === undefined || isInUse(notes)) return 'its changes were not recorded';
  if (last.seq > (await deliveredTo(store, notes.child))) return 'its recorded changes are not merged yet';
  const lock = await lockOf(worktree);
  if (lock !== undefined) return lock === '' ? 'it is locked' : `it is locked: ${lock}`;
  return await withSnapshot(worktree, { doing, keep: false }, async ({ tree, call }) => {
    if (tree !== last.artifact.tree) return 'it has changed since it was recorded';
    const others = await repositoriesIn(worktree, call);
    return others.length === 0 ? undefined : `it contains other repositories: ${others.join(', ')}`;
  });
}

/** Nested repositories in a worktree; a patch does not cover their content. */
async function repositoriesIn({ top }: WorkingTree, call: GitCall): Promise<readonly string[]> {
  const listed = (await git(call, 'ls-files', '--stage', '-z')).toString('utf8').split('\0');
  const links = listed
    .filter((line) => line.startsWith('160000 '))
    .map((line) => line.replace(/^[^\t]*\t/, ''));
  const found: string[] = [];
  for (const path of links)
    if ((await lstat(join(top, path, '.git')).catch(() => undefined)) !== undefined) found.push(path);
  return found;
}

/** Cleans up after crashes: removes the worktrees of merged or discarded children, and partial ones. */
export async function releaseLeftWorktrees(place: WorkspacePlace): Promise<void> {
  if (place.home === undefined) return;
  const names = await readdir(worktreesIn(place.home)).catch(() => []);
  for (const id of new Set(names.map((name) => name.replace(/\.gone$/, '')))) {
    const child = isUlid(id) ? await place.store.sessions.find(id) : undefined;
    if (child?.delivery !== undefined) await releaseWorktree(place, id);
  }
}
