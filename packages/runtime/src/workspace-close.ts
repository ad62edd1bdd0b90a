import { randomUUID } from 'node:crypto';
import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  isUlid,
  type Json,
  type MergeRequest,
  note,
  processOwner,
  type Ref,
  TapeError,
  workspaceClosed,
} from '@tapedeck/tape';
import { runPoint } from './crash-point.ts';
import { messageOf, SessionError } from './errors.ts';
import { type Hold, hold } from './hold.ts';
import { mergedTo, patchBetween } from './workspace-diff.ts';
import { type GitCall, git } from './workspace-git.ts';
import {
  baseOf,
  deliveredTo,
  isDirectory,
  isInUse,
  noWorkspace,
  readNotes,
  type WorkspaceNotes,
  type WorkspacePlace,
  worktreeOf,
  worktreesIn,
} from './workspace-notes.ts';
import { forget, goneOf, lockOf } from './workspace-open.ts';
import { type WorkingTree, withSnapshot } from './workspace-repository.ts';

/**
 * Puts what was done in a child's worktree on the child's tape, so that its merge brings it: again only when something
 * has changed since. Of a child that is being discarded, what cannot be recorded is left where it is.
 * @throws SESSION_PATCH_TOO_LARGE, SESSION_GIT_FAILED, SESSION_NO_GIT; SESSION_NO_WORKSPACE when it was removed; TAPE_BUSY while
 * somebody is writing the child: forced, the merge goes on without
 */
export async function closeWorktree(
  place: WorkspacePlace,
  child: Ref,
  { strategy, force = false }: Pick<MergeRequest, 'strategy' | 'force'> = {},
): Promise<void> {
  const notes = await readNotes(place.store, child);
  if (notes === undefined || notes.opened.length === 0) return;
  try {
    await close(place, notes);
  } catch (error) {
    if (force && isBusy(error)) return;
    if (strategy === 'discard' && error instanceof SessionError) return;
    throw error;
  }
}

async function close(place: WorkspacePlace, { child: { id, name } }: WorkspaceNotes): Promise<void> {
  const held = await holdChild(place, { id, name });
  try {
    const notes = await readNotes(place.store, id);
    // With open calls nothing is merged.
    if (notes === undefined || notes.child.settled !== notes.child.head) return;
    const doing = `record what was done in the worktree of '${name}'`;
    const worktree = await worktreeOf(place, notes);
    if (!(await isDirectory(worktree.top))) {
      if (!isInUse(notes)) return;
      throw noWorkspace(doing, worktree, { session: name, commit: notes.opened.at(-1)?.commit });
    }
    await withSnapshot(worktree, { doing, keep: true }, async ({ tree, call }) => {
      if (!isInUse(notes) && notes.closed.at(-1)?.artifact.tree === tree) return;
      const base = baseOf(notes, await mergedTo(place.store, id)) ?? tree;
      const { files, bytes: patch } = await patchBetween(call, { base, tree, session: name });
      const record = { base, tree, files, patch } as unknown as Json;
      await place.store.append(id, [note(workspaceClosed, record)], { lease: held.lease });
    });
    runPoint('workspace/closed');
  } finally {
    await held.release();
  }
}

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
    const doing = `remove the worktree of '${notes.child.name}'`;
    if (!(await isDirectory(path))) {
      // A crash between the parts of a removal.
      if (!isInUse(notes)) await forget(worktree, doing);
      return undefined;
    }
    const held = await holdChild(place, notes.child);
    try {
      const why = await whyKept(place, worktree, { id: notes.child.id, doing });
      if (why !== undefined) return { path, why };
      runPoint('workspace/before-removal');
      await remove(worktree, doing);
      return undefined;
    } finally {
      await held.release();
    }
  } catch (error) {
    return { path, why: messageOf(error) };
  }
}

async function whyKept(
  { store }: WorkspacePlace,
  worktree: WorkingTree,
  { id, doing }: { id: string; doing: string },
): Promise<string | undefined> {
  const notes = await readNotes(store, id);
  const last = notes?.closed.at(-1);
  if (notes === undefined || last === undefined || isInUse(notes)) return 'what is in it was not recorded';
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

/** At any moment the worktree is there whole, or is not there: it is moved away first. */
async function remove(worktree: WorkingTree, doing: string): Promise<void> {
  const gone = goneOf(worktree);
  await rm(gone, { recursive: true, force: true });
  await rename(worktree.top, gone);
  runPoint('workspace/moved');
  await forget(worktree, doing);
  runPoint('workspace/removed');
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

/** Nobody may work in a worktree while it is recorded or removed. */
async function holdChild(
  { store }: WorkspacePlace,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<Hold> {
  try {
    return await hold(store, id, { owner: processOwner(`close:${randomUUID()}`) });
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== 'SESSION_BUSY') throw error;
    throw new TapeError('TAPE_BUSY', `cannot merge '${name}': it is still running`, {
      data: { ...error.data, child: name },
      cause: error,
    });
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof TapeError && error.code === 'TAPE_BUSY';
}
