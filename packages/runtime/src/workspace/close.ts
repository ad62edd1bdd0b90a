import { randomUUID } from 'node:crypto';
import {
  type Json,
  type MergeRequest,
  note,
  processOwner,
  type Ref,
  type SessionInfo,
  TapeError,
} from '@tapedeck/tape';
import { workspaceClosed } from '@tapedeck/tape/internal';
import { runPoint } from '../crash-point.ts';
import { SessionError } from '../errors.ts';
import { type Hold, hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { mergedTo, patchBetween } from './diff.ts';
import { baseOf, isInUse, readNotes, type WorkspaceNotes, type WorkspacePlace } from './notes.ts';
import { withSnapshot } from './repository.ts';
import { isDirectory, noWorkspace, worktreeOf } from './worktree.ts';

/**
 * Records the changes in a child's worktree on the child's tape, so that its merge delivers them; again only
 * if the files have changed since. When the child is discarded, or merged with `force`, changes that cannot
 * be recorded stay in the worktree.
 * @throws SESSION_PATCH_TOO_LARGE, SESSION_WORKSPACE_FAILED, SESSION_NO_GIT; SESSION_NO_WORKSPACE when the
 * worktree was removed; TAPE_BUSY while the child has another writer
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
    if (force && (isBusy(error) || error instanceof SessionError)) return;
    if (strategy === 'discard' && error instanceof SessionError) return;
    throw error;
  }
}

async function close(place: WorkspacePlace, { child: { id, session: name } }: WorkspaceNotes): Promise<void> {
  const held = await holdChild(place, { id, session: name });
  try {
    // What was said of an answer comes before the record.
    await settleLeftovers(place.store, id, held);
    const notes = await readNotes(place.store, id);
    // A child with open calls cannot be merged.
    if (notes === undefined || notes.child.settled !== notes.child.head) return;
    const doing = `record the changes in the worktree of '${name}'`;
    const worktree = await worktreeOf(place, notes);
    if (!(await isDirectory(worktree.top))) {
      if (!isInUse(notes)) return;
      throw await noWorkspace(doing, worktree, notes);
    }
    await withSnapshot(worktree, { doing, keep: true }, async ({ tree, call }) => {
      if (!isInUse(notes) && notes.closed.at(-1)?.artifact.tree === tree) return;
      const base = baseOf(notes, await mergedTo(place.store, id)) ?? tree;
      const { files, bytes: patch } = await patchBetween(call, { base, tree, session: name });
      const record = { base, tree, files, patch } as unknown as Json;
      await place.store.entries.append(id, [note(workspaceClosed, record)], { lease: held.lease });
    });
    runPoint('workspace/closed');
  } finally {
    await held.release();
  }
}

/** Acquires the child's lease, so that no run changes a worktree while it is recorded or removed. */
export async function holdChild(
  { store }: WorkspacePlace,
  { id, session: name }: Pick<SessionInfo, 'id' | 'session'>,
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
