import { TapeError } from '../errors.ts';
import { type OwnerRow, ownerOf, stateOf } from '../owner.ts';

/** How long a writer waits for the write lock before it gives up, in milliseconds (M3). */
export const lockWaitDefault = 15_000;

/**
 * Does an act again, after a short wait of random length, while somebody else holds the write lock. SQLite's own busy
 * handler backs off to 100 ms and starves a second tight writer; this shares the lock evenly.
 */
export function retryLocked<T>(act: () => T, waitMs: number): T {
  const deadline = performance.now() + waitMs;
  for (;;) {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_LOCKED' || performance.now() > deadline)
        throw error;
      pause(Math.random() * 2);
    }
  }
}

/** Holds the thread for so many milliseconds. */
export function pause(ms: number): void {
  Atomics.wait(waiting, 0, 0, ms);
}

const waiting = new Int32Array(new SharedArrayBuffer(4));

/** Reads rows without waiting for a lock. */
type Rows = <Row>(sql: string) => Row[];

/** The error of a writer that gave up: it names who holds leases, since one of them is likely to hold the lock. */
export function stillLocked(error: TapeError, rows: Rows): TapeError {
  const holders = namedLeases(rows).map((lease) => {
    const { pid, host } = ownerOf(lease);
    return { session: lease.name, owner: lease.owner, pid, host, state: stateOf(ownerOf(lease)) };
  });
  const named = holders.map(({ session, owner, pid, host, state }) =>
    pid === undefined
      ? `${owner} is writing '${session}'`
      : `process ${pid} on ${host ?? 'this host'} (${state}) is writing '${session}'`,
  );
  return new TapeError(
    'TAPE_LOCKED',
    [error.message, ...(named.length === 0 ? ['nobody holds a lease'] : named)].join('; '),
    { data: { holders }, cause: error.cause },
  );
}

/** Who is writing what, as far as it can be read now: a reader is not kept out by the lock. */
function namedLeases(rows: Rows): readonly (OwnerRow & { readonly name: string })[] {
  try {
    return rows('SELECT l.*, t.name FROM lease l JOIN tape t ON t.id = l.tape_id ORDER BY l.expires_at DESC');
  } catch {
    return [];
  }
}
