import { note, processOwner, type SessionInfo, user } from '@tapedeck/tape';
import { hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { answerSpawns } from '../merge/answer-spawns.ts';
import { hasTaken, isEnded } from '../merge/spawn-calls.ts';
import { endOnTape } from '../run/end-on-tape.ts';
import { wasInterrupted } from '../tools/interrupted.ts';
import { isPending, openBatch } from '../tools/open-batch.ts';
import { closeOrphans } from '../tools/orphans.ts';
import type { RunOrder } from './engine.ts';
import type { DelegationParts } from './parts.ts';

/** How a session was brought to an end. Undefined: it had ended already. */
export type Ended = 'resumed' | 'aborted' | 'waiting' | undefined;

/** Whether a session has a task: it was delegated, or a run of it as a fork has begun. */
export function hasTask({ deliver, task }: SessionInfo): boolean {
  return deliver !== undefined || task !== undefined;
}

/**
 * Records the end of a session without running it: the end of a task that its tape shows, which takes
 * precedence, or with `abort` an abort. What was saved of an answer goes to the tape before it, and open calls
 * get results. `message`: with which the session was resumed; it goes to the tape, too, so that its run does not begin later.
 */
export async function settle(
  { store, newId, worker }: DelegationParts,
  { id, session: name }: SessionInfo,
  {
    abort,
    message,
  }: { readonly abort: false | 'by parent' | 'by recovery'; readonly message?: RunOrder['message'] },
): Promise<Ended> {
  const held = await hold(store, id, { owner: processOwner(newId()) });
  try {
    // Read again under the lease: another process may have resumed it meanwhile.
    const facts = await worker({ id, session: name }).facts();
    const { info } = facts;
    const isTask = hasTask(info);
    const isNew = message !== undefined && !(await hasTaken(store, info, message.key));
    const waits = abort !== false && (await openBatch(store, id)).some(isPending);
    if (!isNew && (isTask ? isEnded(info) : !waits && !(await wasInterrupted(store, id)))) return undefined;
    const reached = isTask && !isNew ? await endOnTape(store, facts) : undefined;
    if (reached === undefined && abort === false) return undefined;
    await settleLeftovers(store, id, held);
    await answerSpawns(store, id, { hold: held, all: true });
    await closeOrphans(store, id, { hold: held });
    if (reached === undefined) {
      const unbegun = (await openBatch(store, id)).map(({ toolCallId }) => toolCallId);
      const reason = `aborted ${abort}`;
      const aborted = note('run/aborted', { reason, ...(unbegun.length > 0 && { unbegun }) });
      // With its message, the end of an earlier task is not that of this one.
      if (isNew) await store.sessions.update(id, { task: 'running' }, { lease: held.lease });
      await store.entries.append(id, [...(isNew ? [user(message.text, message.meta)] : []), aborted], {
        lease: held.lease,
      });
      // The abort also closes the calls that waited for an answer.
      await closeOrphans(store, id, { hold: held });
    }
    if (isTask) await store.sessions.update(id, { task: reached ?? 'aborted' }, { lease: held.lease });
    return reached === undefined ? 'aborted' : undefined;
  } finally {
    await held.release();
  }
}
