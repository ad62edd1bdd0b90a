import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isUlid, type Ref, type TapeStore } from '@tapedeck/tape';
import { runPoint } from '../crash-point.ts';
import { messageOf } from '../errors.ts';
import { holdChild } from './close.ts';
import { type GitCall, git } from './git.ts';
import { deliveredTo, isInUse, readNotes, type WorkspaceNotes, type WorkspacePlace } from './notes.ts';
import { type WorkingTree, withSnapshot } from './repository.ts';
import { forget, goneOf, isDirectory, lockOf, worktreeOf, worktreesIn } from './worktree.ts';

/** A worktree that stays although its child was merged, and why. */
export interface KeptWorktree {
  readonly path: string;
  readonly why: string;
}

/**
 * Removes the worktree of a child that was merged or discarded, if all that is in it was recorded before: a worktree that was changed
 * since, that is locked, or that holds other repositories stays. Never fails: what cannot be removed now stays too.
 */
export async function releaseWorktree(place: WorkspacePlace, child: Ref): Promise<KeptWorktree | undefined> {
  let path = '';
  try {
    const notes = await readNotes(place.store, child);
    if (notes === undefined || place.home === undefined) return undefined;
    const worktree = await worktreeOf(place, notes);
    path = worktree.top;
    const left = await Promise.all([path, goneOf(worktree), worktree.gitDir].map(isDirectory));
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

/** Removes a worktree that nobody works in, or says why not. */
async function release(
  { store }: WorkspacePlace,
  worktree: WorkingTree,
  child: Ref,
): Promise<string | undefined> {
  const notes = await readNotes(store, child);
  if (notes === undefined) return undefined;
  const doing = `remove the worktree of '${notes.child.name}'`;
  const isThere = await isDirectory(worktree.top);
  // Of a worktree that somebody else removed git still has what was committed there.
  if (!isThere && isInUse(notes)) return undefined;
  const why =
    isThere && notes.opened.length > 0 ? await whyKept(store, worktree, { notes, doing }) : undefined;
  if (why !== undefined) return why;
  runPoint('workspace/before-removal');
  // At any moment the worktree is there whole, or is not there: it is moved away first.
  if (isThere) {
    await rm(goneOf(worktree), { recursive: true, force: true });
    await rename(worktree.top, goneOf(worktree));
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
  if (last === undefined || isInUse(notes)) return 'what is in it was not recorded';
  if (last.seq > (await deliveredTo(store, notes.child))) return 'what was recorded of it is not merged yet';
  const lock = await lockOf(worktree);
  if (lock !== undefined) return lock === '' ? 'it is locked' : `it is locked: ${lock}`;
  return await withSnapshot(worktree, { doing, keep: false }, async ({ tree, call }) => {
    if (tree !== last.artifact.tree) return 'it was changed after it was recorded';
    const others = await repositoriesIn(worktree, call);
    return others.length === 0 ? undefined : `it holds other repositories: ${others.join(', ')}`;
  });
}

/** Directories of a worktree that are repositories of their own: a patch has nothing of what is in them. */
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

/** Finishes what crashes left: removes the worktrees of children that were merged or discarded, and halves of them. */
export async function releaseLeftWorktrees(place: WorkspacePlace): Promise<void> {
  if (place.home === undefined) return;
  const names = await readdir(worktreesIn(place.home)).catch(() => []);
  for (const id of new Set(names.map((name) => name.replace(/\.gone$/, '')))) {
    const child = isUlid(id) ? await place.store.find(id) : undefined;
    if (child?.delivery !== undefined) await releaseWorktree(place, id);
  }
}
