import type { SessionInfo } from '@tapedeck/tape';
import { childCallChunks, childCallsOf } from '../ui/child-calls.ts';
import { progressOf } from '../ui/children.ts';
import { type StartedChild, spawned } from '../ui/started.ts';
import type { Forked } from './fork-tasks.ts';
import type { Delegated, DelegateTask } from './options.ts';
import type { ChildOutcome } from './outcome.ts';
import type { DelegationScope } from './scope.ts';

/** Shows how a child ended, or what it waits for, to those who watch the parent. */
export async function showChild(
  { parts: { store, worker }, parent, delegated, progress, elsewhere }: DelegationScope,
  { child, task, earlier }: Forked,
  {
    status,
    text,
    error,
    waits,
  }: Pick<ChildOutcome, 'status' | 'text' | 'waits'> & { readonly error?: string | undefined },
): Promise<void> {
  // What the tape says of a child that has run before: this process has seen a part of it.
  const isSeen = elsewhere === undefined && earlier.repeated !== true && task.resume === undefined;
  if (waits !== true && isSeen) {
    progress.end(child.name, { status, text, error });
    return;
  }
  const started = startedBy(delegated, await child.info(), task);
  progress.settle(child.name, await progressOf(store, started), error);
  if (!started.isAwaited) return;
  const chunks = childCallChunks(await childCallsOf(store, [started]));
  worker({ session: parent.name, id: parent.id }).emitChunks(chunks);
}

/** A child as the call that delegates has started or resumed it. */
function startedBy(
  { options: { by } }: Delegated,
  info: SessionInfo,
  { task, key, resume }: DelegateTask<unknown>,
): StartedChild {
  if (resume === undefined || key === undefined || by === undefined) return spawned(info);
  return { info, call: by.toolCallId, resumed: { task, key }, isAwaited: by.blocking };
}
