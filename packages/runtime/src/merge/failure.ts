import { type Draft, processOwner, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import { hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { closeOrphans } from '../tools/orphans.ts';

/**
 * Records on a child's own tape why its task failed, when no run recorded it: merges, lists and tools read
 * the outcome from there.
 * @param cause the event with the reason: `run/error` or `result/refused`
 * @param message the message with which the child was resumed, where its tape does not have it
 * @throws SESSION_BUSY while another process writes the child
 */
export async function recordFailure(
  store: TapeStore,
  child: SessionInfo,
  cause: Draft,
  message?: Draft,
): Promise<void> {
  const held = await hold(store, child.id, { owner: processOwner(`failure:${child.id}`) });
  try {
    const { lease } = held;
    await settleLeftovers(store, child.id, held);
    await closeOrphans(store, child.id, { hold: held });
    // With its message, the end of an earlier task is not that of this one.
    if (message !== undefined) await store.sessions.update(child.id, { task: 'running' }, { lease });
    await store.entries.append(child.id, message === undefined ? [cause] : [message, cause], { lease });
    await store.sessions.update(child.id, { task: 'failed' }, { lease });
  } finally {
    await held.release();
  }
}
