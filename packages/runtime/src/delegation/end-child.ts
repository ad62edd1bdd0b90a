import { setTimeout as sleep } from 'node:timers/promises';
import { note, type SessionInfo } from '@tapedeck/tape';
import { runPoint } from '../crash-point.ts';
import { isOfDatabase, messageOf } from '../errors.ts';
import { recordFailure } from '../merge/failure.ts';
import { childIsBusy } from '../merge/merge.ts';
import { resultOf } from '../merge/outcome.ts';
import { settleParent } from '../merge/settle-parent.ts';
import { outputOf } from '../model/output.ts';
import { type Delivered, deliver } from './deliver.ts';
import type { Forked } from './fork-tasks.ts';
import type { DelegateTask } from './options.ts';
import type { ChildOutcome, RunEnd } from './outcome.ts';
import { type DelegationScope, onTapes } from './scope.ts';
import { showChild } from './show-child.ts';

/** How often a merge is tried again while another process has the child, in milliseconds. */
const pollMs = 50;

/** Shows how a child ended, merges its result into the parent, and says what came of it. */
export async function endChild(
  scope: DelegationScope,
  forked: Forked,
  run: RunEnd,
): Promise<ChildOutcome<unknown>> {
  const { events, elsewhere } = scope;
  const { child, task, earlier } = forked;
  if (run.broken === true) await recordBroken(scope, await child.info(), run);
  const info = await onTapes(scope, async () => run.row ?? (await child.info()));
  const { result, fault: unfit } = await onTapes(scope, () => usableResult(scope, info, task));
  const ended = { session: child.name, ...earlier, usage: run.usage, ...result };
  if (run.waits === true || run.closed === true) {
    const error = run.error ?? `cannot merge '${child.name}' yet: it waits for an answer`;
    const waits = run.waits === true ? ({ waits: true } as const) : {};
    const outcome = { ...ended, status: 'running', merged: undefined, error, ...waits } as const;
    await onTapes(scope, () => showChild(scope, forked, outcome));
    return outcome;
  }
  const status = run.broken === true ? 'failed' : (info.task ?? 'completed');
  const { error: message, code } = run;
  events.push({
    type: 'child-ended',
    session: child.name,
    status,
    text: ended.text,
    ...(message !== undefined && { error: { ...(code !== undefined && { code }), message } }),
  });
  // Before its report reaches the parent, whose run may then end.
  const shown = { status, text: ended.text, error: message ?? unfit };
  await onTapes(scope, () => showChild(scope, forked, shown));
  runPoint('child/ended');
  try {
    const delivered = await onTapes(scope, () => mergeOnceFree(scope, info, run));
    const { merged, fault } = asOwn(scope, forked, delivered);
    if (merged !== undefined) events.push({ type: 'child-merged', session: child.name, merged });
    if (fault === undefined) {
      const error = run.error ?? unfit;
      return { ...ended, status, merged, ...(error !== undefined && { error }) };
    }
    // The refused result is recorded as a failure, so read the outcome again.
    const { result } = await usableResult(scope, info, task);
    const error = run.error ?? fault;
    await showChild(scope, forked, { status: 'failed', text: result.text, error });
    const { session, usage } = ended;
    return { session, ...earlier, usage, ...result, status: 'failed', merged, error };
  } catch (error) {
    // A run that is done again delegates again, and finds the child.
    if (elsewhere !== undefined && isOfDatabase(error)) throw error;
    return { ...ended, status, merged: undefined, error: messageOf(error) };
  }
}

/** Records the failure of a run that could not start or be recorded, which left no end on the child's tape. */
async function recordBroken(
  { parts: { store } }: DelegationScope,
  info: SessionInfo,
  { error: message = 'unknown' }: RunEnd,
): Promise<void> {
  try {
    await recordFailure(store, info, note('run/error', { message }));
  } catch {
    // The forced merge reports the failure.
  }
}

/**
 * The result of a child, as the schema of its task makes it. A result of an earlier run may not fit: then there
 * is only its text. `fault` says so, or why the child was aborted.
 */
async function usableResult(
  { parts: { store }, delegated: { options } }: DelegationScope,
  info: SessionInfo,
  task: DelegateTask<unknown>,
): Promise<{
  readonly result: { readonly text: string; readonly output?: unknown };
  readonly fault?: string;
}> {
  const { text, output: recorded, error: fault } = await resultOf(store, info);
  if (recorded === undefined) return { result: { text }, ...(fault !== undefined && { fault }) };
  try {
    return { result: { text, output: await outputOf(task.output ?? options.output, recorded) } };
  } catch (error) {
    return { result: { text }, fault: `cannot use the result of '${info.session}': ${messageOf(error)}` };
  }
}

/** Merges a child whose task has ended. Retries while the process that ran it still has its lease. */
async function mergeOnceFree(
  { parts, delegated, signal, elsewhere }: DelegationScope,
  info: SessionInfo,
  run: RunEnd,
): Promise<Delivered> {
  const { strategy, onConflict, at, by } = delegated.options;
  const { closing } = parts;
  const broken = run.broken === true ? ({ status: 'failed', force: true, strategy: 'result' } as const) : {};
  for (;;) {
    try {
      return await deliver(parts, info, {
        ...(typeof strategy === 'function' && { strategy }),
        ...(onConflict !== undefined && { onConflict }),
        ...(at !== undefined && { at }),
        ...broken,
        // A call that an abort leaves open gets the outcome too: from its tool, or from the parent's next run.
        answered: by?.blocking === true,
        // A blocking call stays open until the parent's next run, so waiting for the merge here would not
        // end.
        ...(by?.blocking === true || closing.aborted ? { waitMs: 0 } : { signal: closing }),
        // The process that ran the parent may have died in a call. Without a result that call blocks the
        // merge.
        whileWaiting: async () => await settleParent(parts, info, { leaves: 'repeatable', deadline: 0 }),
      });
    } catch (error) {
      // Elsewhere its owner has ended it, and gives its lease back in a moment.
      const isLeft = signal.aborted && elsewhere === undefined;
      if (!childIsBusy(error) || isLeft || closing.aborted) throw error;
      await sleep(pollMs);
    }
  }
}

/** The worker that ran a child may merge it before this process does: it is this delegation's merge all the same. */
function asOwn(
  { elsewhere }: DelegationScope,
  { earlier, task }: Forked,
  { merged, ...delivered }: Delivered,
): Delivered {
  const isOwn = elsewhere !== undefined && earlier.repeated !== true && task.resume === undefined;
  return { ...delivered, merged: isOwn && merged !== undefined ? { ...merged, repeated: false } : merged };
}
