import type { SqliteTapeStore } from '@tapedeck/tape';
import type { ImportPlan } from './plan.ts';
import { isRefusal } from './refusal.ts';

/**
 * Merges each subagent whose result came back into the session that got it, once. Views do not show the merge: they show
 * the result of the call, as the model got it. A merge that a rewind of this import hid is made again.
 */
export function mergeEnded(
  store: SqliteTapeStore,
  { conversations }: ImportPlan,
  sessionOf: (key: string) => string | undefined,
): void {
  // Those that were called last first: what a subagent got of its own is part of what it delivers.
  for (const { key, ended } of conversations.toReversed()) {
    const session = sessionOf(key);
    const child = session === undefined ? undefined : store.sessions.find(session);
    if (session === undefined || child?.parent === undefined || ended === undefined) continue;
    const isMerged = child.delivery !== undefined && child.undone !== true;
    if (isMerged) continue;
    try {
      store.lineage.merge(session, { context: false, status: ended });
    } catch (error) {
      // One of the two is archived or in use: a later import merges it.
      if (!isRefusal(error)) throw error;
    }
  }
}
