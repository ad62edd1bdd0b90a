import { setTimeout as sleep } from 'node:timers/promises';
import { SessionError } from '../errors.ts';
import type { RecoveryReport } from '../recovery/recover.ts';
import { isInterrupted } from '../tools/interrupted.ts';
import { type ChatPlace, isWritten, lookMs } from './streams.ts';

/**
 * Continues an answer whose process has died. Resolves with true once it goes on here or elsewhere, or has ended
 * meanwhile; with false for a session that no process has left in the middle of an answer.
 */
export type GoOn = (place: ChatPlace) => Promise<boolean>;

/** Makes a `GoOn` of the recovery of a deck: one at a time for each session, however many clients read its answer. */
export function goingOn(recover: (session: string) => Promise<RecoveryReport>): GoOn {
  const underWay = new Map<string, Promise<RecoveryReport>>();
  return async (place) => {
    const { id } = place.session;
    if (!underWay.has(id) && !(await isInterrupted(place.store, id))) return false;
    const recovery = underWay.get(id) ?? recover(id).finally(() => underWay.delete(id));
    underWay.set(id, recovery);
    let isOver = false;
    const over = recovery.finally(() => {
      isOver = true;
    });
    over.catch(() => {});
    while (!isOver) {
      if (place.session.attach() !== undefined || (await isWritten(place))) return true;
      await Promise.race([over, sleep(lookMs)]);
    }
    const failure = (await over).failed.find(({ session }) => session === place.session.name);
    if (failure !== undefined) throw new SessionError('SESSION_MODEL_FAILED', failure.message);
    return (await isWritten(place)) || !(await isInterrupted(place.store, id));
  };
}
