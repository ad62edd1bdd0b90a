import type { HomeInfo } from './data.ts';
import { textOf } from './follow.ts';
import type { PageSource } from './source.ts';

/** The home that is shown. */
export function home({ store, title, version }: PageSource): HomeInfo {
  return {
    title,
    version,
    // A copy of a file that cannot be read in place stays as it is.
    isLive: !store.isCopy,
    sessions: store.countListed(),
    at: textOf(store.homeHead()),
  };
}
