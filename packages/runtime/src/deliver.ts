import type { Merged, SessionInfo, TapeStore } from '@tapedeck/tape';
import type { DeckParts } from './deck.ts';
import { SessionError } from './errors.ts';
import { type MergeOptions, mergeChild, postMerge } from './merge.ts';
import { openBatch } from './open-batch.ts';
import { forkTermsOf } from './settings.ts';
import { closeWorktree } from './workspace-close.ts';

/** Whether a child's task has come to an end; one that waits for somebody has not. */
export function isEnded({ task }: Pick<SessionInfo, 'task'>): boolean {
  return task !== undefined && task !== 'running';
}

/** What bringing a child home came to. */
export interface Delivered {
  /** The receipt; nothing for a call that has the result otherwise, whose merge is still to be done. */
  readonly merged: Merged | undefined;
  /** Why its result could not be used: its parent was told that it failed. */
  readonly fault?: string;
}

/**
 * Brings the result of a delegated child home, in the way that it was asked for when it was forked (K32): as a merge, and
 * with `merge+turn` a message that starts its parent, in the same act. A call that still waits for the result gets it
 * otherwise: then the merge's message is stored and not shown, so that the parent's model reads it once.
 */
export async function deliver(
  parts: DeckParts,
  child: SessionInfo,
  options: MergeOptions & { readonly answered?: boolean } = {},
): Promise<Delivered> {
  const { answered = child.deliver === 'tool-result' && (await isAwaited(parts.store, child)), ...given } =
    options;
  const { strategy } = (await forkTermsOf(parts.store, child)).terms;
  const request: MergeOptions = {
    // A child that failed has no result in a form; its parent learns that it failed.
    ...(strategy !== undefined && (child.task === 'completed' || strategy === 'summary') && { strategy }),
    ...(child.deliver === 'merge+turn' && { notify: true }),
    ...given,
  };
  if (answered) {
    // The call is open, so that nothing can be merged: it is left for the moment when the call has its result.
    const draft = { context: false, at: 'step' } as const;
    await closeWorktree(parts, child.id);
    await postMerge(parts.store, child.id, draft);
    return { merged: undefined };
  }
  const delivered = await orFailure(parts, child, request);
  if (child.deliver === 'merge+turn') await wake(parts, child);
  return delivered;
}

/** A result that cannot be used is told as a failure: a parent does not wait for ever for a better one. */
async function orFailure(parts: DeckParts, child: SessionInfo, request: MergeOptions): Promise<Delivered> {
  try {
    return { merged: await mergeChild(parts, child.id, request) };
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== 'SESSION_BAD_RESULT') throw error;
    const text = `Error: ${error.message}`;
    const told = { ...request, strategy: 'result', status: 'failed', text } as const;
    return { merged: await mergeChild(parts, child.id, told), fault: error.message };
  }
}

/** Whether the call that asked for a child is still waiting for its result. */
async function isAwaited(store: TapeStore, { spawnCall, parentId }: SessionInfo): Promise<boolean> {
  if (spawnCall === undefined || parentId === undefined) return false;
  return (await openBatch(store, parentId)).some(({ toolCallId }) => toolCallId === spawnCall);
}

/** Starts the parent with what waits in its inbox, unless somebody is running it: then that run goes on with it. */
async function wake(parts: DeckParts, { parentId, parent }: SessionInfo): Promise<void> {
  if (parentId === undefined || parent === undefined) return;
  try {
    await parts.worker({ id: parentId, name: parent }).takeUp();
  } catch {
    // It stays in the inbox, durable, for the next who can run the parent.
  }
}

/**
 * Brings home what a run of a delegated child came to that nobody here waits for: one that was gone on with by an answer to a
 * call, or by hand.
 */
export async function deliverUnattended(parts: DeckParts, id: string): Promise<void> {
  try {
    const info = await parts.store.find(id);
    if (info?.deliver === undefined || info.delivery !== undefined || !isEnded(info)) return;
    if (parts.jobs.has(info.name)) return;
    await deliver(parts, info, { waitMs: 0 });
  } catch {
    // What could not be merged now is in the parent's inbox, or is found by audit and recovery.
  }
}
