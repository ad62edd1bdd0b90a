import type { TapeStore } from '@tapedeck/tape';
import type { Hold } from '../lease/hold.ts';
import { openBatch } from '../tools/open-batch.ts';
import { type DeckTools, isRepeatable } from '../tools/traits.ts';
import { postMerge, settleChild } from './merge.ts';
import { spawnAnswer } from './spawn-calls.ts';

/**
 * Answers delegating calls that a crash or an abort left open with the outcomes of their children, instead of
 * "outcome unknown". Skips calls whose tool in `tools` is safe to repeat, because a repeated call finds its
 * children, and the calls in `keep`. It first posts the merges of the reported children, hidden from the
 * view: a crash after that still leaves them to be done.
 */
export async function answerSpawns(
  store: TapeStore,
  session: string,
  { hold, tools = {}, keep = [] }: { hold: Hold; tools?: DeckTools; keep?: readonly string[] },
): Promise<void> {
  const parent = await store.sessions.find(session);
  if (parent === undefined) return;
  for (const call of await openBatch(store, session)) {
    if (call.state !== 'begun' || keep.includes(call.toolCallId)) continue;
    if (isRepeatable(tools, call)) continue;
    const answer = await spawnAnswer(store, parent, call);
    if (answer === undefined) continue;
    for (const child of answer.reported) {
      await settleChild(store, child);
      await postMerge(store, child, { context: false, at: 'step' });
    }
    await store.entries.append(session, [answer.result], { lease: hold.lease });
  }
}
