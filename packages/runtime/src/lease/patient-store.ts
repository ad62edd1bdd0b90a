import { setTimeout as sleep } from 'node:timers/promises';
import { TapeError, type TapeStore } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';

/** The longest total wait of one call for the write lock, in milliseconds. */
const waitMaxMs = 15_000;

/**
 * A store whose calls wait for the write lock of another process on timers, without blocking the event loop,
 * so that streams, heartbeats and timers of other sessions continue. Direct use of the inner store, and
 * iteration over its reads, still blocks for `lockWaitMs`.
 * @param assertOpen called before each call; throws when the calls are to be refused
 */
export function patientStore(store: TapeStore, assertOpen: () => void = () => {}): TapeStore {
  return wrapStore(store, ({ act }) => {
    assertOpen();
    return patiently(() => withoutWaiting(store, act));
  });
}

/** Makes a call that would block the thread fail at once instead. */
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

/** A call that succeeds at once returns at once; only one that has to wait returns a promise. */
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
