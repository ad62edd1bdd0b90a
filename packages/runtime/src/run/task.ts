import type { SessionInfo } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import { endOnTape } from './end-on-tape.ts';
import { infoOf, type RunRequest, type RunScope } from './request.ts';

/** How the task of a delegated session stands after a run that ended so. */
export const taskAfter = {
  stop: 'completed',
  length: 'completed',
  halted: 'halted',
  waiting: 'running',
  aborted: 'aborted',
  error: 'failed',
} as const;

/**
 * Asked under the lease, so that nobody ends the task in between. An end that only the tape shows is recorded first.
 * @throws SESSION_ENDED
 */
export async function assertUnended(
  { parts, hold, origin }: RunScope,
  info: SessionInfo,
  { items = [] }: RunRequest,
): Promise<void> {
  // No run of it has begun.
  if (info.task === undefined) return;
  const isRecorded = info.task !== 'running';
  // One that has been given more to do meanwhile is not at its end.
  const task = isRecorded
    ? info.task
    : items.length > 0
      ? undefined
      : await endOnTape(parts.store, { info, origin });
  if (task === undefined) return;
  if (!isRecorded) await parts.store.setTask(info.id, task, { lease: hold.lease });
  throw new SessionError('SESSION_ENDED', `cannot run '${info.name}' again: its task is ${task}`, {
    data: { session: info.name, task },
  });
}

/** The parent of a child whose run could not be recorded must not wait for it. */
export async function markFailed(scope: RunScope): Promise<void> {
  const { parts, session, hold } = scope;
  try {
    const { task } = await infoOf(scope);
    if (task === 'running') await parts.store.setTask(session.id, 'failed', { lease: hold.lease });
  } catch {
    // The store itself fails: the error that is on its way says so.
  }
}
