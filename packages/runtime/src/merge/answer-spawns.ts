import type { TapeStore } from '@tapedeck/tape';
import type { Hold } from '../lease/hold.ts';
import { openBatch } from '../tools/open-batch.ts';
import { type DeckTools, toolOf } from '../tools/traits.ts';
import { postMerge, settleChild } from './merge.ts';
import { spawnAnswer } from './spawn-calls.ts';

/**
 * Gives the calls that a crash or an abort left open, and that asked for children, what these came to: never that nobody knows.
 * Calls of `tools` that are safe to repeat are left alone: run again, they find their children. So are those that `keep`
 * names. The merges of the children that a result tells of are left in the inbox first, not to be shown: they are done
 * together with it or after it, whoever dies.
 */
export async function answerSpawns(
  store: TapeStore,
  session: string,
  { hold, tools = {}, keep = [] }: { hold: Hold; tools?: DeckTools; keep?: readonly string[] },
): Promise<void> {
  const parent = await store.find(session);
  if (parent === undefined) return;
  for (const call of await openBatch(store, session)) {
    if (call.state !== 'begun' || keep.includes(call.toolCallId)) continue;
    if (toolOf(tools, call.toolName)?.safeToRepeat === true) continue;
    const answer = await spawnAnswer(store, parent, call);
    if (answer === undefined) continue;
    for (const child of answer.told) {
      await settleChild(store, child);
      await postMerge(store, child, { context: false, at: 'step' });
    }
    await store.append(session, [answer.result], { lease: hold.lease });
  }
}
