import type { TapeStore } from '@tapedeck/tape';

/** A store that notes its calls, each as its method and its arguments in JSON. */
export function countingStore(store: TapeStore): { readonly store: TapeStore; readonly calls: string[] } {
  const calls: string[] = [];
  const counting = new Proxy(store, {
    get: (target, property) => {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) => {
        calls.push(`${String(property)} ${JSON.stringify(args)}`);
        return Reflect.apply(value, target, args);
      };
    },
  });
  return { store: counting, calls };
}
