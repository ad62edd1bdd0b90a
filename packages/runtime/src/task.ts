import type { SessionInfo } from '@tapedeck/tape';
import { SessionError } from './errors.ts';
import { infoOf, type Stage } from './job.ts';

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
 * Asked under the lease, so that nobody ends the task in between.
 * @throws SESSION_ENDED
 */
export async function needUnended({ name, task }: SessionInfo): Promise<void> {
  if (task === undefined || task === 'running') return;
  throw new SessionError('SESSION_ENDED', `cannot run '${name}' again: its task is ${task}`, {
    data: { session: name, task },
  });
}

/** The parent of a child whose run could not be recorded must not wait for it. */
export async function markFailed(stage: Stage): Promise<void> {
  const { parts, session, hold } = stage;
  try {
    const { task } = await infoOf(stage);
    if (task === 'running') await parts.store.setTask(session.id, 'failed', { lease: hold.lease });
  } catch {
    // The store itself fails: the error that is on its way says so.
  }
}
