import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import type { LineageMerge } from './data.ts';
import { refOf, shownAs } from './source.ts';

/** The last merge or discard of a session, unless the session that received it was deleted. */
export function lastMerge(store: HomeStore, info: SessionInfo): LineageMerge | undefined {
  let found: LineageMerge | undefined;
  for (const line of store.lineage.read({ session: info.id, types: ['merge', 'discard'] })) {
    const { type, into, seq, range } = line;
    const target = into === undefined ? undefined : shownAs(store, into);
    if (target === undefined || seq === undefined) continue;
    found = {
      child: refOf(store, info),
      into: refOf(store, target),
      seq,
      state: type === 'merge' ? 'merged' : 'discarded',
      ...(range != null && { range: [range[0], range[1]] }),
      ...(info.undone === true && { undone: true }),
    };
  }
  return found;
}
