import { setTimeout as sleep } from 'node:timers/promises';
import { processOwner, type SessionInfo } from '@tapedeck/tape';
import type { Shared } from '../config/shared.ts';
import { runPoint } from '../crash-point.ts';
import { SessionError } from '../errors.ts';
import { hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import type { OpenCall } from '../stream/call.ts';
import { awaitsChildren, openBatch } from '../tools/open-batch.ts';
import { closeOrphans } from '../tools/orphans.ts';
import { isRepeatable } from '../tools/traits.ts';
import { answerSpawns } from './answer-spawns.ts';
import { hasWaiting, isAnswerable, isEnded, isHalfSpawned } from './spawn-calls.ts';

export interface SettleOptions {
  /**
   * Which calls of repeatable tools to leave for the parent's next run: all; those that have not started all
   * their children, if the parent is an unfinished child itself; none.
   */
  readonly leaves: 'repeatable' | 'half-spawned' | 'none';
  /** When to stop waiting for a busy parent, as of `performance.now()`. */
  readonly deadline: number;
  readonly signal?: AbortSignal;
}

const pollMs = 50;

/**
 * Records the rest of an answer of a parent whose process died, and closes its open calls, as its next run
 * would: open calls block merges, and a merge comes after what the parent had said. A call that waits for children
 * gets their outcomes once all of them have ended. While a process runs the parent, that process closes them.
 */
export async function settleParent(
  { store, newId, config }: Shared,
  { parentId = '' }: SessionInfo,
  { leaves, deadline, signal }: SettleOptions,
): Promise<void> {
  const { tools = {} } = config;
  for (;;) {
    const parent = await store.sessions.find(parentId);
    if (parent === undefined) return;
    const hasLeftovers = (await store.live.read(parent.id)).length > 0;
    if (parent.settled === parent.head && !hasLeftovers) return;
    const willResume = parent.deliver !== undefined && !isEnded(parent);
    const isLeft = async (call: OpenCall) => {
      if (!(await isAnswerable(store, parent, call))) return true;
      if (leaves === 'none' || !isRepeatable(tools, call)) return false;
      // Repeated, it waits for the children that wait for answers.
      if (awaitsChildren(call) || (await hasWaiting(store, parent, call))) return true;
      return leaves === 'repeatable' || (willResume && (await isHalfSpawned(store, parent, call)));
    };
    try {
      const held = await hold(store, parent.id, { owner: processOwner(newId()) });
      try {
        await settleLeftovers(store, parent.id, held);
        const keep: string[] = [];
        for (const call of await openBatch(store, parent.id))
          if (await isLeft(call)) keep.push(call.toolCallId);
        await answerSpawns(store, parent.id, { hold: held, keep });
        await closeOrphans(store, parent.id, { hold: held, keep });
        runPoint('parent/settled');
      } finally {
        await held.release();
      }
      return;
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== 'SESSION_BUSY') throw error;
      // Another recovery releases the lease soon; a run does when it ends.
      if (performance.now() >= deadline) return;
      await sleep(pollMs, undefined, { signal });
    }
  }
}
