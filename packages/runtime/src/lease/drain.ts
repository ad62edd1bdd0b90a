import type { Lease, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { DrainOptions } from '@tapedeck/tape/store';
import { traceMerge } from '../telemetry/runs.ts';
import { isTraced } from '../telemetry/span.ts';

/**
 * Drains the inbox of a session: as its owner, or in place of one. In a traced program the merges that it performs have a
 * span, as those that `lineage.merge` performs.
 */
export async function drainInbox(
  store: TapeStore,
  owned: Lease | string,
  options?: DrainOptions,
): Promise<number | undefined> {
  const before = isTraced() ? await store.sessions.find(idOf(owned)) : undefined;
  const count = await store.inbox.drain(owned, options);
  if (before !== undefined && (count ?? 0) > 0) await traceMerge(before.id, await mergedSince(store, before));
  return count;
}

function idOf(owned: Lease | string): string {
  return typeof owned === 'string' ? owned : owned.id;
}

/** The children of which a session has marks of merges behind its head of then. */
async function mergedSince(store: TapeStore, { id, head }: SessionInfo): Promise<readonly string[]> {
  const children: string[] = [];
  for await (const { name, payload } of store.entries.read(id, { from: head + 1, kind: 'anchor' })) {
    const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
    if (name?.startsWith('merge/') === true && typeof state.child === 'string') children.push(state.child);
  }
  return children;
}
