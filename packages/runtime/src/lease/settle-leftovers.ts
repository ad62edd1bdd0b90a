import type { TapeStore } from '@tapedeck/tape';
import { leftoverEntries } from '@tapedeck/tape/internal';
import { isUnstorable } from '../errors.ts';
import type { Hold } from './hold.ts';

/**
 * Records the saved text and calls of live answers whose process died, as partial answers. Returns whether there were any.
 */
export async function settleLeftovers(store: TapeStore, session: string, { lease }: Hold): Promise<boolean> {
  const left = await store.live.read(session);
  for (const live of left) {
    const entries = leftoverEntries(live);
    try {
      await store.entries.append(lease.id, entries, { lease, settles: live.run });
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      // The partial answer is too large for an entry. Keeping it would stop all later runs.
      await store.entries.append(lease.id, entries.slice(-1), { lease, settles: live.run });
    }
  }
  return left.length > 0;
}
