import type { TapeStore } from './store.ts';

/** A call of a method of a store. */
export interface StoreCall {
  /** `entries.append`, `verify`, … */
  readonly method: string;
  readonly args: readonly unknown[];
  /** Does the call on the wrapped store, and returns its answer. */
  readonly act: () => unknown;
  /** The same with other arguments. */
  readonly actWith: (args: readonly unknown[]) => unknown;
}

/**
 * Returns a store whose calls all go through `around`, which returns the answer: to wait, to retry, to count or
 * to refuse. Settings and the methods themselves stay those of the wrapped store.
 */
export function wrapStore<Store extends TapeStore>(
  store: Store,
  around: (call: StoreCall) => unknown,
): Store {
  return wrapped(store, '', around);
}

function wrapped<T extends object>(target: T, path: string, around: (call: StoreCall) => unknown): T {
  const groups = new Map<PropertyKey, object>();
  return new Proxy(target, {
    get: (_, property) => {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value === 'function') {
        const method = path + String(property);
        const actWith = (args: readonly unknown[]) => Reflect.apply(value, target, args);
        return (...args: readonly unknown[]) => around({ method, args, act: () => actWith(args), actWith });
      }
      if (typeof value !== 'object' || value === null) return value;
      const group = groups.get(property) ?? wrapped(value, `${String(property)}.`, around);
      groups.set(property, group);
      return group;
    },
    set: (_, property, value) => Reflect.set(target, property, value, target),
  });
}
