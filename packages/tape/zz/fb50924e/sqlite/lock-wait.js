import { TapeError } from '../errors.js';
import {                ownerOf, stateOf } from '../owner.js';
import { lockHolders } from './lock-holders.js';

/** Default wait of a writer for the write lock, in milliseconds. */
export const lockWaitDefault = 15_000;

/** The shortest wait: most writers hold the lock for less. */
export const lockWaitMin = 20;

/** Whether an act failed because another connection holds a lock. */
export function isLocked(error         )                     {
  return error instanceof TapeError && error.code === 'TAPE_LOCKED';
}

/**
 * Repeats an act that failed with `error`, after short random pauses, while another connection holds the write lock. A
 * writer that has just committed takes the lock again within microseconds, so the others get it by asking often, however
 * long they have waited: SQLite's own busy handler asks ever more seldom, and starves them.
 */
export function retryLocked   (error           , act         , waitMs        )    {
  const deadline = performance.now() + waitMs;
  for (let last          = error; ; ) {
    if (!isLocked(last) || performance.now() >= deadline) throw last;
    pause(Math.random());
    try {
      return act();
    } catch (failed) {
      last = failed;
    }
  }
}

/** Blocks the thread for some milliseconds. */
export function pause(ms        )       {
  Atomics.wait(waiting, 0, 0, ms);
}

const waiting = new Int32Array(new SharedArrayBuffer(4));

/** Reads rows without waiting for a lock. */
                                        

/**
 * Makes the error of a writer that gave up. It names the processes that hold the lock, where the system tells them,
 * and the owners of leases, one of whom probably holds it elsewhere.
 */
export function stillLocked(error           , { file, rows }                              )            {
  const processes = lockHolders(file);
  const holders = namedLeases(rows).map((lease) => {
    const { pid, host } = ownerOf(lease);
    return { session: lease.name, owner: lease.owner, pid, host, state: stateOf(ownerOf(lease)) };
  });
  const named = holders.map(({ session, owner, pid, host, state }) =>
    pid === undefined
      ? `${owner} is writing '${session}'`
      : `process ${pid} on ${host ?? 'this host'} (${state}) is writing '${session}'`,
  );
  const locking = processes.map(
    ({ pid, program }) => `process ${pid}${program === undefined ? '' : ` (${program})`} holds the lock`,
  );
  const who = [...locking, ...named];
  return new TapeError(
    'TAPE_LOCKED',
    [error.message, ...(who.length === 0 ? ['no owner holds a lease'] : who)].join('; '),
    { data: { holders, processes }, cause: error.cause },
  );
}

/** Returns the leases with their sessions, if they can be read; the write lock does not block readers. */
function namedLeases(rows      )                                                    {
  try {
    return rows('SELECT l.*, t.name FROM lease l JOIN tape t ON t.id = l.tape_id ORDER BY l.expires_at DESC');
  } catch {
    return [];
  }
}
