import type { TapeStore } from '@tapedeck/tape';
import type { Hold } from '../lease/hold.ts';
import { awaitsChildren, openBatch } from '../tools/open-batch.ts';
import { type DeckTools, isRepeatable } from '../tools/traits.ts';
import { postMerge, settleChild } from './merge.ts';
import { haveEnded, spawnAnswer } from './spawn-calls.ts';

/**
 * Answers delegating calls that a crash or an abort left open with the outcomes of their children, instead of
 * "outcome unknown". Skips calls whose tool in `tools` is safe to repeat, because a repeated call finds its
 * children, the calls in `keep`, and without `all` those that wait for children which have not ended. It first posts the merges of the reported children, hidden from the
 * view: a crash after that still leaves them to be done.
 */
export async function answerSpawns(
  store: TapeStore,
  session: string,
  {
    hold,
    tools = {},
    keep = [],
    all = false,
  }: { hold: Hold; tools?: DeckTools; keep?: readonly string[]; all?: boolean },
): Promise<void> {
  const parent = await store.sessions.find(session);
  if (parent === undefined) return;
  for (const call of await openBatch(store, session)) {
    if (keep.includes(call.toolCallId) || isRepeatable(tools, call)) continue;
    const isDue =
      call.state === 'begun' || (awaitsChildren(call) && (all || (await haveEnded(store, parent, call))));
    if (!isDue) continue;
    const answer = await spawnAnswer(store, parent, call);
    if (answer === undefined) continue;
    for (const child of answer.reported) {
      await settleChild(store, child);
      await postMerge(store, child, { context: false, at: 'step', unlessMerged: child.head });
    }
    await store.entries.append(session, [answer.result], { lease: hold.lease });
  }
}
