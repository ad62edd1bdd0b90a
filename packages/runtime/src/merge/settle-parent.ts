import { setTimeout as sleep } from 'node:timers/promises';
import { processOwner, type SessionInfo } from '@tapedeck/tape';
import type { Shared } from '../config/shared.ts';
import { runPoint } from '../crash-point.ts';
import { SessionError } from '../errors.ts';
import { hold } from '../lease/hold.ts';
import type { OpenCall } from '../stream/call.ts';
import { openBatch } from '../tools/open-batch.ts';
import { closeOrphans } from '../tools/orphans.ts';
import { toolOf } from '../tools/traits.ts';
import { answerSpawns } from './answer-spawns.ts';
import { isAnswerable, isEnded, isHalfSpawned } from './spawn-calls.ts';

export interface SettleOptions {
  /**
   * Which calls of tools that are safe to repeat are left for the parent's next run: all; of a parent that is a child and will be
   * gone on with, those that had not started all their children; none.
   */
  readonly leaves: 'repeatable' | 'half-spawned' | 'none';
  /** When to give up waiting for who is writing the parent, as of `performance.now()`. */
  readonly deadline: number;
  readonly signal?: AbortSignal;
}

const pollMs = 50;

/**
 * A parent that died inside a tool call cannot take a merge in before its calls have results: as its next run would give.
 * A call that waits for children gets what they came to, and none before all of them have ended. While somebody is running
 * the parent its calls are theirs.
 */
export async function settleParent(
  { store, newId, config }: Shared,
  { parentId = '' }: SessionInfo,
  { leaves, deadline, signal }: SettleOptions,
): Promise<void> {
  const { tools = {} } = config;
  for (;;) {
    const parent = await store.find(parentId);
    if (parent === undefined || parent.settled === parent.head) return;
    const goesOn = parent.deliver !== undefined && !isEnded(parent);
    const isLeft = async (call: OpenCall) => {
      if (!(await isAnswerable(store, parent, call))) return true;
      if (leaves === 'none' || toolOf(tools, call.toolName)?.safeToRepeat !== true) return false;
      return leaves === 'repeatable' || (goesOn && (await isHalfSpawned(store, parent, call)));
    };
    try {
      const held = await hold(store, parent.id, { owner: processOwner(newId()) });
      try {
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
      // Another recovery lets go of it soon; a run does when it has ended.
      if (performance.now() >= deadline) return;
      await sleep(pollMs, undefined, { signal });
    }
  }
}
