import type { Entry, Json, SessionInfo, TapeStore } from '@tapedeck/tape';
import { leftoverEntries } from '@tapedeck/tape/internal';

/**
 * What a process that died had saved of an answer, as the entries that the next one to write the session makes of it. None
 * while a process writes the session: its answer is read as a stream.
 */
export async function unsettledEntries(store: TapeStore, info: SessionInfo): Promise<readonly Entry[]> {
  const left = await store.live.read(info.id);
  if (left.length === 0 || (await store.leases.list()).some(({ id }) => id === info.id)) return [];
  return left.flatMap(leftoverEntries).map(({ kind, name, payload, meta = {} }, i) => ({
    kind,
    ...(name !== undefined && { name }),
    payload: payload as Json,
    meta,
    session: info.session,
    tape: info.session,
    seq: info.head + 1 + i,
    at: info.updatedAt,
    hash: '',
    inherited: false,
  }));
}
