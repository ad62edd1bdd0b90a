import type { Mask } from '../secrets/mask.ts';
import type { TapeStore } from './store.ts';
import { wrapStore } from './wrap.ts';

/**
 * A store that replaces secrets by their names in all that its methods are given, before it is hashed and written.
 * What is on its tapes already stays as it is.
 */
export function maskedStore<Store extends TapeStore>(store: Store, mask: Mask | undefined): Store {
  if (mask === undefined) return store;
  return wrapStore(store, ({ args, actWith }) => actWith(mask.value(args)));
}
