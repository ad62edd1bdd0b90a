import type { Entry, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { contentSum } from '../plan/exported.ts';

/**
 * What a record of another program says of the entry that it was made of: the session, the hash of the entry and where it was
 * said, the hashes of the messages before it that have no record, of a boundary its state, and of the first record the sessions
 * from which that was forked. The sum of the message, if it has one, shows later whether it was changed.
 */
export function markOf(
  session: string,
  entry: Entry,
  {
    message,
    passed = [],
    from = [],
  }: {
    readonly message?: JsonObject | undefined;
    readonly passed?: readonly string[];
    readonly from?: readonly string[];
  },
): JsonObject {
  const state = entry.meta.source === 'import' ? undefined : stateOf(entry);
  return {
    session,
    entry: entry.hash,
    place: isObject(entry.meta.place) ? entry.meta.place : {},
    ...(from.length > 0 && { from }),
    ...(passed.length > 0 && { passed }),
    ...(state !== undefined && { state }),
    ...(message !== undefined && { sum: contentSum(message) }),
  };
}

/** The state of a boundary; of a compaction its summary, since views show no more of it. */
function stateOf({ mark, kind, payload }: Entry): JsonObject | undefined {
  if (mark !== 'boundary' || !isObject(payload) || !isObject(payload.state)) return undefined;
  const { summary } = payload.state;
  if (kind !== 'compaction') return payload.state;
  return typeof summary === 'string' ? { summary } : {};
}
