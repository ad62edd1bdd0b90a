import type { HomeStore } from '@tapedeck/tape';

/** How long nothing is read after a change, in milliseconds: changes come in bursts. */
const pauseMs = 200;

/** Yields after changes of the home, until the signal. */
export async function* changesOf(store: HomeStore, signal: AbortSignal): AsyncGenerator<void> {
  const { setTimeout: sleep } = await import('node:timers/promises');
  for (let seen: number | undefined; !signal.aborted; ) {
    const now = store.changes();
    if (now !== seen) {
      seen = now;
      yield;
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}
