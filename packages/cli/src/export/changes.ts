import type { HomeStore } from '@tapedeck/tape';
import { Patience } from '@tapedeck/tape/internal';

/** How long nothing is read after a change, in milliseconds: changes come in bursts. */
const pauseMs = 200;

/** Does something at first and after changes of the home, until the signal; again if a server was away meanwhile. */
export async function onChanges(store: HomeStore, signal: AbortSignal, act: () => unknown): Promise<void> {
  const { setTimeout: sleep } = await import('node:timers/promises');
  const patience = new Patience();
  for (let seen: number | undefined; !signal.aborted; ) {
    const now = store.changes();
    if (now !== seen)
      try {
        await act();
        seen = now;
        patience.renew();
      } catch (error) {
        await patience.wait(error);
      }
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}
