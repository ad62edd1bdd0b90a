import { type Merged, note, type SessionInfo } from '@tapedeck/tape';
import { resultRefused } from '@tapedeck/tape/internal';
import { runPoint } from '../crash-point.ts';
import { SessionError } from '../errors.ts';
import { earlierMerge } from '../merge/earlier.ts';
import { recordFailure } from '../merge/failure.ts';
import { giveUp } from '../merge/give-up.ts';
import { type MergeOptions, mergeChild, postMerge, settleChild, type Waiting } from '../merge/merge.ts';
import { isAwaited, isEnded, isReportedToParent } from '../merge/spawn-calls.ts';
import type { Above } from '../run/above.ts';
import type { RunOptions } from '../run/options.ts';
import type { SessionFacts } from '../terms/terms.ts';
import { closeWorktree } from '../workspace/close.ts';
import { continueWaiting } from './continue.ts';
import type { DelegationParts } from './parts.ts';

export interface DeliverOptions extends MergeOptions, Waiting {
  /**
   * Whether the caller answers the parent's call with the result. Undefined: deliver nothing while a call
   * waits for it.
   */
  readonly answered?: boolean;
  /** False: post the message that starts the parent, but do not start it. */
  readonly wakes?: boolean;
}

/** The outcome of delivering a child's result. */
export interface Delivered {
  /** The receipt. Undefined when a call of the parent gets the result, and the merge follows later. */
  readonly merged: Merged | undefined;
  /** Why the result could not be used; the parent then received a failure. */
  readonly fault?: string;
}

/**
 * Delivers the result of a delegated child as its fork requested: as a merge, and with `merge+turn` also a
 * message that starts the parent, in the same transaction. When an open call of the parent gets the result,
 * the merge's message is stored outside the view, so that the parent's model reads the result once. While
 * another caller has to answer such a call, nothing is done here: that caller also merges.
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
    // An open call blocks merges: post this one, to be done once the call has its result.
    await settleChild(store, child);
    if (origin.worktree !== undefined) await closeWorktree(parts, child.id);
    await postMerge(store, child, { context: false, at: 'step', unlessMerged: child.head });
    runPoint('child/posted');
    return { merged: undefined };
  }
  if (answered === undefined && (await isAwaited(store, child))) return { merged: undefined };
  const before =
    child.delivery === undefined
      ? undefined
      : await earlierMerge(store, child.id, { unlessMerged: child.head });
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
    // A failed child has no structured result; its parent receives the failure instead.
    ...(strategy !== undefined && (child.task === 'completed' || strategy === 'summary') && { strategy }),
    ...((await isReportedToParent(store, child)) && { context: false }),
    ...given,
    // What was read of the child can be old: another process may have merged it, and more may be on its tape.
    unlessMerged: child.head,
  };
  return await orFailure(parts, facts, request);
}

/**
 * Merges a result, or a failure when the result cannot be used: otherwise the parent would wait for it
 * forever.
 */
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
 * Gives the parent its turn after a merge by a caller, if the child was forked with `merge+turn`: the merge posted a
 * message, which no run has taken yet.
 */
export async function wakeFor(parts: DelegationParts, child: SessionInfo): Promise<void> {
  if (child.deliver !== 'merge+turn' || child.parentId === undefined) return;
  const left = await parts.store.inbox.list(child.parentId);
  if (left.some(({ key }) => key.startsWith(`notify:${child.id}:`))) await wake(parts, child);
}

/**
 * Runs the parent's inbox, unless a process already runs the parent and takes it up. An interrupted run of
 * the parent continues first, because the next run would not answer its message.
 */
export async function wake(
  parts: DelegationParts,
  { parentId, parent }: Pick<SessionInfo, 'parentId' | 'parent'>,
  options: RunOptions = {},
): Promise<void> {
  if (parentId === undefined || parent === undefined) return;
  try {
    await parts.worker({ id: parentId, session: parent }).startQueued(options, { cutOff: true });
    runPoint('parent/woken');
  } catch {
    // The message stays in the inbox for the next run of the parent.
  }
}

/**
 * Before a child is discarded: ends it if it waits for an answer, and lets a parent go on whose call waits for it. The call
 * gets the outcome of an aborted child, and the discard follows.
 */
export async function beforeDiscard(
  parts: DelegationParts,
  child: SessionInfo,
  request: MergeOptions,
): Promise<void> {
  const { store } = parts;
  const { strategy, reason } = request;
  if (strategy !== 'discard' || !(await giveUp(store, child, reason))) return;
  if (child.parentId === undefined || !(await isAwaited(store, child))) return;
  // Before the call of the parent posts the merge of its outcome.
  await postMerge(store, child, { strategy, ...(reason !== undefined && { reason }) });
  await continueWaiting(parts, child.parentId);
}

/**
 * Delivers a delegated child that ended without a waiting delegation: it was run by hand, by another process than the
 * one that forked it, or by an answer to a call. A child that has worked on after a merge and ended again is merged
 * again. A parent whose call has waited for the child goes on.
 */
export async function deliverUnattended(
  parts: DelegationParts,
  { id, name }: { readonly id: string; readonly name: string },
  above?: Above,
): Promise<void> {
  try {
    if (parts.startedChildren.has(name)) return;
    const info = await parts.store.sessions.find(id);
    if (info === undefined || !isEnded(info)) return;
    await deliverAsForked(parts, info);
    if (info.parentId !== undefined) await continueWaiting(parts, info.parentId, above);
  } catch {
    // The merge is in the parent's inbox, or audit and recovery find the child.
  }
}

async function deliverAsForked(parts: DelegationParts, info: SessionInfo): Promise<void> {
  if (info.deliver === undefined || info.delivery === 'discarded') return;
  // The end of its task has notified the parent, and nothing else is due.
  if (info.deliver === 'notify') return;
  await deliver(parts, info, { waitMs: 0 });
}
