import type { TapeStore } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';

/** A store that notes its calls, each as its method and its arguments in JSON. */
export function countingStore(store: TapeStore): { readonly store: TapeStore; readonly calls: string[] } {
  const calls: string[] = [];
  const counting = wrapStore(store, ({ method, args, act }) => {
    calls.push(`${method} ${JSON.stringify(args)}`);
    return act();
  });
  return { store: counting, calls };
}
