import { setTimeout as sleep } from 'node:timers/promises';
import { TapeError, type TapeStore } from '@tapedeck/tape';

/** How long an act of the runtime waits for the write lock in all, in milliseconds (M3). */
const waitMaxMs = 15_000;

/**
 * A store whose acts wait for the write lock of another process on timers, so that the event loop goes on: streams,
 * heartbeats and timers of other sessions are not held up. Whoever uses the store itself, or iterates over what it
 * reads, waits as the store was opened to.
 */
export function patientStore(store: TapeStore): TapeStore {
  return new Proxy(store, {
    get: (target, property) => {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) =>
        patiently(() => withoutWaiting(target, () => Reflect.apply(value, target, args)));
    },
  });
}

/** An act of a store that would hold the thread while it waits gives up at once. */
function withoutWaiting<T>(store: TapeStore, act: () => T): T {
  const { lockWaitMs } = store;
  if (lockWaitMs === undefined) return act();
  store.lockWaitMs = 0;
  try {
    return act();
  } finally {
    store.lockWaitMs = lockWaitMs;
  }
}

/** What succeeds at once is returned at once; only what has to wait becomes a promise. */
function patiently(act: () => unknown): unknown {
  try {
    const result = act();
    return result instanceof Promise ? result.catch((error) => again(act, error)) : result;
  } catch (error) {
    return again(act, error);
  }
}

async function again(act: () => unknown, first: unknown): Promise<unknown> {
  let error = first;
  for (const deadline = performance.now() + waitMaxMs; ; ) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_LOCKED' || performance.now() > deadline)
      throw error;
    await sleep(1 + Math.random() * 4);
    try {
      return await act();
    } catch (next) {
      error = next;
    }
  }
}
