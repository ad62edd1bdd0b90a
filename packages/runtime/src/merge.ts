import { setTimeout as sleep } from 'node:timers/promises';
import { type Merged, type MergeRequest, processOwner, TapeError, type TapeStore } from '@tapedeck/tape';
import { SessionError } from './errors.ts';
import { hold } from './hold.ts';
import { closeOrphans } from './orphans.ts';
import { closeWorktree } from './workspace-close.ts';
import type { WorkspacePlace } from './workspace-notes.ts';
import { releaseWorktree } from './workspace-release.ts';

export interface MergeOptions extends MergeRequest {
  /** How long to wait for a busy parent to take the merge in; by default as long as it takes. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

const pollMs = 50;

/**
 * Merges a child into its parent, or, while someone is writing the parent or it has calls without a result, leaves the
 * merge in its inbox and waits until it has been done. Whoever waits also tries to do it, in case the owner dies. What the
 * child did in a worktree of its own is recorded before, and the worktree removed afterwards.
 * @throws SESSION_MERGE_WAITING when `waitMs` is over: the merge is accepted and still to be done; what `closeWorktree` throws
 */
export async function mergeChild(
  place: WorkspacePlace,
  child: string,
  options: MergeOptions = {},
): Promise<Merged> {
  await settleChild(place.store, child);
  await closeWorktree(place, child, options);
  const merged = await mergeOrPost(place.store, child, options);
  await releaseWorktree(place, child);
  return merged;
}

async function mergeOrPost(
  store: TapeStore,
  child: string,
  { waitMs = Number.POSITIVE_INFINITY, signal, ...request }: MergeOptions,
): Promise<Merged> {
  let posted: string | undefined;
  const deadline = performance.now() + waitMs;
  for (;;) {
    signal?.throwIfAborted();
    try {
      // Once the owner has done it, merging again finds the receipt.
      if (posted === undefined || !(await waiting(store, child, posted, request)))
        return await store.merge(child, request);
    } catch (error) {
      if (!parentIsBusy(error)) throw error;
      posted ??= (await post(store, child, request)).id;
    }
    if (performance.now() >= deadline)
      throw new SessionError(
        'SESSION_MERGE_WAITING',
        `cannot merge '${child}' yet: its parent is being written, or has calls without a result`,
        {
          data: { child, queued: posted },
        },
      );
    await sleep(Math.min(pollMs, Math.max(1, deadline - performance.now())), undefined, { signal });
  }
}

/** The calls that an abort left open in a child get their results now: nothing of it is going to be run. */
async function settleChild(store: TapeStore, child: string): Promise<void> {
  const info = await store.find(child);
  if (info === undefined || info.settled === info.head || info.task !== 'aborted') return;
  const held = await hold(store, info.id, { owner: processOwner(`merge:${info.id}`) });
  try {
    await closeOrphans(store, info.id, { hold: held, why: 'aborted by parent' });
  } finally {
    await held.release();
  }
}

/** Whether it is the parent that cannot take anything in yet, and not the child: someone is writing it, or its calls are open. */
function parentIsBusy(error: unknown): boolean {
  if (!(error instanceof TapeError) || error.data.child !== undefined) return false;
  return error.code === 'TAPE_BUSY' || error.code === 'TAPE_UNSETTLED';
}

/** Whether it is the child that someone is still writing. */
export function childIsBusy(error: unknown): boolean {
  return error instanceof TapeError && error.code === 'TAPE_BUSY' && error.data.child !== undefined;
}

async function post(store: TapeStore, child: string, request: MergeRequest): Promise<{ id: string }> {
  const info = await store.find(child);
  const key = `merge:${info?.id}:${info?.headHash}`;
  return await store.post(await parentOf(store, child, request), {
    body: { type: 'merge', draft: { ...request, child } },
    source: 'agent',
    key,
  });
}

/** Whether the posted merge is still in the inbox, after trying to do it in the owner's place. */
async function waiting(store: TapeStore, child: string, id: string, request: MergeRequest): Promise<boolean> {
  const parent = await parentOf(store, child, request);
  await store.drainOwnerless(parent);
  return (await store.inbox(parent)).some((item) => item.id === id);
}

async function parentOf(store: TapeStore, child: string, request: MergeRequest): Promise<string> {
  return request.into ?? (await store.find(child))?.parentId ?? child;
}
