import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionInfo } from '@tapedeck/tape';
import type { DelegationParts } from '../delegation/parts.ts';

const pollMs = 50;

/**
 * Resolves when nothing runs here any more of these sessions and of what is under them: no run, and no child
 * that a run started in the background.
 */
export async function untilQuiet(
  parts: DelegationParts,
  roots: readonly SessionInfo[],
  signal: AbortSignal | undefined,
): Promise<void> {
  for (;;) {
    const busy: Promise<unknown>[] = [];
    for (const info of await withDescendants(parts, roots)) {
      const worker = parts.worker(info);
      if (worker.isServing) busy.push(worker.idle());
      const started = parts.startedChildren.get(info.session);
      if (started !== undefined) busy.push(started.end);
    }
    if (busy.length === 0) return;
    await Promise.all(busy);
    // A child that has ended is merged next.
    await sleep(pollMs, undefined, { signal });
  }
}

async function withDescendants(
  { store }: DelegationParts,
  roots: readonly SessionInfo[],
): Promise<readonly SessionInfo[]> {
  const found = new Map(roots.map((info) => [info.id, info]));
  for (const { id } of found.values())
    for (const child of await store.sessions.list({ parent: id, all: true })) found.set(child.id, child);
  return [...found.values()];
}
