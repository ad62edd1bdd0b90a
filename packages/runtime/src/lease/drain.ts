import type { Lease, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { DrainOptions } from '@tapedeck/tape/store';
import { traceMerge } from '../telemetry/runs.ts';
import { isTraced } from '../telemetry/span.ts';

/**
 * Executes the pending items of an inbox, as its owner or in place of one. The merges among them have a span, where the
 * program is traced.
 * @returns what `store.inbox.drain` does
 */
export async function drainInbox(
  store: TapeStore,
  of: Lease | { readonly id: string },
  o: DrainOptions = {},
): Promise<number | undefined> {
  const act = async () =>
    'epoch' in of ? await store.inbox.drain(of, o) : await store.inbox.drain(of.id);
  const before = isTraced() ? await store.sessions.find(of.id) : undefined;
  const count = await act();
  if (before === undefined || count === undefined || count === 0) return count;
  const children: string[] = [];
  const read = store.entries.read(of.id, { from: before.head + 1, own: true, namePrefix: 'merge/' });
  for await (const { kind, payload } of read) {
    const state = kind === 'anchor' && isObject(payload) && isObject(payload.state) ? payload.state : {};
    if (typeof state.child === 'string') children.push(state.child);
  }
  if (children.length > 0) await traceMerge(before.id, children);
  return count;
}
