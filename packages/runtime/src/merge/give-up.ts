import { note, processOwner, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import { hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { runningChildren } from '../status/waits.ts';
import { isPending, openBatch } from '../tools/open-batch.ts';
import { closeOrphans } from '../tools/orphans.ts';
import { answerSpawns } from './answer-spawns.ts';

/**
 * Ends the task of a child that waits for an answer, and of those to which it delegates, as aborted: it is
 * discarded, and its question with it. So the call of its parent that waits for it gets an outcome. Returns whether it did: a child that a
 * process runs, or that waits for nothing, stays as it is.
 */
export async function giveUp(
  store: TapeStore,
  { id }: Pick<SessionInfo, 'id'>,
  reason: string | undefined,
): Promise<boolean> {
  const waits = async (now: SessionInfo | undefined) =>
    now?.task === 'running' && (await openBatch(store, now)).some(isPending);
  const isRun = (await store.leases.list()).some((owner) => owner.id === id);
  if (isRun || !(await waits(await store.sessions.find(id)))) return false;
  for (const child of await runningChildren(store, id)) await giveUp(store, child, reason);
  const held = await hold(store, id, { owner: processOwner(`discard:${id}`), act: 'discard' });
  try {
    // Another process may have answered it meanwhile.
    if (!(await waits(await store.sessions.find(id)))) return false;
    await settleLeftovers(store, id, held);
    await answerSpawns(store, id, { hold: held, all: true });
    await closeOrphans(store, id, { hold: held });
    const unbegun = (await openBatch(store, id)).map(({ toolCallId }) => toolCallId);
    const why = reason === undefined ? 'discarded' : `discarded: ${reason}`;
    const aborted = note('run/aborted', { reason: why, ...(unbegun.length > 0 && { unbegun }) });
    await store.entries.append(id, [aborted], { lease: held.lease });
    await closeOrphans(store, id, { hold: held });
    await store.sessions.update(id, { task: 'aborted' }, { lease: held.lease });
    return true;
  } finally {
    await held.release();
  }
}
