import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { againMs } from '../db/away.ts';

/** Whether a server refuses LISTEN: it is a standby, which only reads. */
export function cannotListen(error: unknown): boolean {
  return (error as { readonly code?: unknown } | undefined)?.code === '25006';
}

/**
 * Asks a standby again and again how far it has replayed the server that it follows, and tells when that has changed. The
 * connection that asks is one of its own, and ends with the one that reads.
 */
export async function tellReplayed(reading: Client, asking: Client, tell: () => void): Promise<void> {
  let isOver = false;
  reading.once('end', () => {
    isOver = true;
  });
  try {
    await asking.connect();
    for (let seen: string | undefined; !isOver; ) {
      const { rows } = await asking.query<{ at: string }>('SELECT pg_last_wal_replay_lsn()::text AS at');
      const at = rows[0]?.at;
      if (at !== seen) tell();
      seen = at;
      await sleep(againMs);
    }
  } catch {
    // With a server that is gone both connections are lost, and made anew. If only this one is, so is the other.
    if (!isOver) await reading.end().catch(() => {});
  } finally {
    await asking.end().catch(() => {});
  }
}
