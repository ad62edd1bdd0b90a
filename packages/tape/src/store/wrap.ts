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

/** The names of the groups of methods. What else a store has, such as the state of its graph file, is no group. */
const groupNames: Readonly<Record<Group, true>> = {
  sessions: true,
  entries: true,
  views: true,
  history: true,
  lineage: true,
  leases: true,
  inbox: true,
  live: true,
  imports: true,
  identities: true,
};

type Group = {
  [Name in keyof TapeStore]-?: NonNullable<TapeStore[Name]> extends (...args: never) => unknown
    ? never
    : NonNullable<TapeStore[Name]> extends object
      ? Name
      : never;
}[keyof TapeStore];

function wrapped<T extends object>(target: T, path: string, around: (call: StoreCall) => unknown): T {
  const groups = new Map<PropertyKey, object>();
  // Made once for each method: a hot path asks for the same one again and again.
  const calls = new Map<
    PropertyKey,
    { readonly of: unknown; readonly call: (...args: readonly unknown[]) => unknown }
  >();
  return new Proxy(target, {
    get: (_, property) => {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value === 'function' && path === '' && property === 'inRealm')
        return (base: string) => wrapStore(Reflect.apply(value, target, [base]) as TapeStore, around);
      if (typeof value === 'function') {
        const known = calls.get(property);
        if (known?.of === value) return known.call;
        const method = path + String(property);
        const actWith = (args: readonly unknown[]) => Reflect.apply(value, target, args);
        const call = (...args: readonly unknown[]) =>
          around({ method, args, act: () => actWith(args), actWith });
        calls.set(property, { of: value, call });
        return call;
      }
      const isGroup = path === '' && Object.hasOwn(groupNames, property);
      if (!isGroup || typeof value !== 'object' || value === null) return value;
      const group = groups.get(property) ?? wrapped(value, `${String(property)}.`, around);
      groups.set(property, group);
      return group;
    },
    set: (_, property, value) => Reflect.set(target, property, value, target),
  });
}
