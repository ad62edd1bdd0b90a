import type { SessionInfo } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import { endOnTape } from './end-on-tape.ts';
import { infoOf, type RunRequest, type RunScope } from './request.ts';

/** The task state of a delegated session, by the finish of its run. */
export const taskAfter = {
  stop: 'completed',
  length: 'completed',
  halted: 'halted',
  filtered: 'filtered',
  waiting: 'running',
  aborted: 'aborted',
  error: 'failed',
} as const;

/**
 * Checks under the lease that a task has not ended. Records an end that only the tape shows.
 * @throws SESSION_ENDED
 */
export async function assertUnended(
  { parts, hold, origin }: RunScope,
  info: SessionInfo,
  { items = [] }: RunRequest,
): Promise<void> {
  // The task has not begun.
  if (info.task === undefined) return;
  const isRecorded = info.task !== 'running';
  // A task with new inbox items continues.
  const task = isRecorded
    ? info.task
    : items.length > 0
      ? undefined
      : await endOnTape(parts.store, { info, origin });
  if (task === undefined) return;
  if (!isRecorded) await parts.store.sessions.update(info.id, { task }, { lease: hold.lease });
  throw new SessionError('SESSION_ENDED', `cannot run '${info.session}' again: its task is ${task}`, {
    data: { session: info.session, task },
  });
}

/** Marks the task of a run that could not be recorded as failed, so that the parent does not wait for it. */
export async function markFailed(scope: RunScope): Promise<void> {
  const { parts, session, hold } = scope;
  try {
    const { task } = await infoOf(scope);
    if (task === 'running')
      await parts.store.sessions.update(session.id, { task: 'failed' }, { lease: hold.lease });
  } catch {
    // The store itself fails: the caller throws that error.
  }
}
