import { type Merged, note, resultRefused, type SessionInfo, TapeError } from '@tapedeck/tape';
import { runPoint } from '../crash-point.ts';
import { SessionError } from '../errors.ts';
import { recordFailure } from '../merge/failure.ts';
import { type MergeOptions, mergeChild, postMerge, settleChild, type Waiting } from '../merge/merge.ts';
import { isAwaited, isEnded, isReportedToParent } from '../merge/spawn-calls.ts';
import type { RunOptions } from '../run/options.ts';
import type { SessionFacts } from '../terms/terms.ts';
import { closeWorktree } from '../workspace/close.ts';
import type { DelegationParts } from './parts.ts';

export interface DeliverOptions extends MergeOptions, Waiting {
  /** Whether the caller answers the call that waits for the result; by default nobody here does. */
  readonly answered?: boolean;
  /** False: the parent is left with the message that is to start it. */
  readonly wakes?: boolean;
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
 * otherwise: then the merge's message is stored and not shown, so that the parent's model reads it once. Nothing is done while
 * a call waits that others answer: whoever does merges, too.
 */
export async function deliver(
  parts: DelegationParts,
  child: SessionInfo,
  { answered, wakes = true, ...given }: DeliverOptions = {},
): Promise<Delivered> {
  const { store } = parts;
  runPoint('child/before-merge');
  const { origin } = await parts.worker(child).facts(child);
  if (answered === true) {
    // The call is open, so that nothing can be merged: it is left for the moment when the call has its result.
    await settleChild(store, child);
    if (origin.worktree !== undefined) await closeWorktree(parts, child.id);
    await postMerge(store, child, { context: false, at: 'step' });
    runPoint('child/posted');
    return { merged: undefined };
  }
  if (answered === undefined && (await isAwaited(store, child))) return { merged: undefined };
  const before = child.delivery === undefined ? undefined : await store.merged(child.id);
  const delivered =
    before === undefined ? await mergeNow(parts, { info: child, origin }, given) : { merged: before };
  runPoint('child/merged');
  if (child.deliver === 'merge+turn' && wakes) await wake(parts, child);
  return delivered;
}

async function mergeNow(
  parts: DelegationParts,
  facts: SessionFacts,
  given: MergeOptions & Waiting,
): Promise<Delivered> {
  const { store } = parts;
  const { info: child, origin } = facts;
  const { strategy } = origin.terms;
  const request: MergeOptions & Waiting = {
    // A child that failed has no result in a form; its parent learns that it failed.
    ...(strategy !== undefined && (child.task === 'completed' || strategy === 'summary') && { strategy }),
    ...(child.deliver === 'merge+turn' && { notify: true }),
    ...((await isReportedToParent(store, child)) && { context: false }),
    ...given,
  };
  try {
    return await orFailure(parts, facts, request);
  } catch (error) {
    // Somebody else was quicker, with words of their own.
    const merged =
      error instanceof TapeError && error.code === 'TAPE_CONFLICT' ? await store.merged(child.id) : undefined;
    if (merged === undefined) throw error;
    return { merged };
  }
}

/** A result that cannot be used is told as a failure: a parent does not wait for ever for a better one. */
async function orFailure(
  parts: DelegationParts,
  child: SessionFacts,
  request: MergeOptions & Waiting,
): Promise<Delivered> {
  try {
    return { merged: await mergeChild(parts, child, request) };
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== 'SESSION_BAD_RESULT') throw error;
    const { message } = error;
    await recordFailure(parts.store, child.info, note(resultRefused, { message }));
    const { info } = await parts.worker(child.info).facts();
    const merged = await mergeChild(parts, { ...child, info }, { ...request, strategy: 'result' });
    return { merged, fault: message };
  }
}

/**
 * Starts the parent with what waits in its inbox, unless somebody is running it: then that run goes on with it. A run of the
 * parent that was cut off is gone on with first: what it began with is not answered by the next.
 */
export async function wake(
  parts: DelegationParts,
  { parentId, parent }: Pick<SessionInfo, 'parentId' | 'parent'>,
  options: RunOptions = {},
): Promise<void> {
  if (parentId === undefined || parent === undefined) return;
  try {
    await parts.worker({ id: parentId, name: parent }).takeUp(options, { cutOff: true });
    runPoint('parent/woken');
  } catch {
    // It stays in the inbox, durable, for the next who can run the parent.
  }
}

/**
 * Brings home what a run of a delegated child came to that nobody here waits for: one that was gone on with by an answer to a
 * call, or by hand.
 */
export async function deliverUnattended(
  parts: DelegationParts,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<void> {
  try {
    if (parts.startedChildren.has(name)) return;
    const info = await parts.store.find(id);
    if (info?.deliver === undefined || info.delivery !== undefined || !isEnded(info)) return;
    await deliver(parts, info, { waitMs: 0 });
  } catch {
    // What could not be merged now is in the parent's inbox, or is found by audit and recovery.
  }
}
