import { setTimeout as sleep } from 'node:timers/promises';
import type { HomeStore } from '@tapedeck/tape';

/**
 * Waits until an item has left the inbox, and processes the inbox itself if no process writes the session.
 */
export async function drained(
  store: HomeStore,
  { name, id, waitMs }: { name: string; id: string; waitMs: number },
): Promise<boolean> {
  for (const deadline = performance.now() + waitMs; ; ) {
    store.inbox.drain(name);
    if (!store.inbox.list(name).some((item) => item.id === id)) return true;
    if (performance.now() >= deadline) return false;
    await sleep(50);
  }
}
