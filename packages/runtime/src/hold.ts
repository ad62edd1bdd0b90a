import { fenced, type Lease, leaseTtlMs, type Owner, TapeError, type TapeStore } from '@tapedeck/tape';
import { SessionError } from './errors.ts';

/** The right to write a session, kept alive by a heartbeat while a run or an act lasts. */
export interface Hold {
  /** The lease as it stands now. */
  readonly lease: Lease;
  /** Aborted when another owner has taken the session over. */
  readonly lost: AbortSignal;
  /** Does what arrived in the inbox. Call it at settled points only. */
  drain(): Promise<void>;
  /** Empties the inbox and gives the lease back. */
  release(): Promise<void>;
}

/** How often an owner looks whether somebody else has written, in milliseconds. */
const pollMs = 100;

/**
 * Takes a session's lease. `onWaiting` is told how many items wait in the inbox, each time that there are more.
 * @throws SESSION_BUSY when someone else is writing it
 */
export async function hold(
  store: TapeStore,
  ref: string,
  { owner, onWaiting }: { owner: Owner; onWaiting?: ((items: number) => void) | undefined },
): Promise<Hold> {
  let seen = await store.changes();
  let lease = await acquire(store, ref, owner);
  const lost = new AbortController();
  // The beat also runs while a model call is awaited, and does not keep a process alive by itself.
  const beat = setInterval(() => {
    void extend();
  }, leaseTtlMs / 3).unref();
  const extend = async () => {
    try {
      lease = await store.extend(lease);
    } catch (error) {
      if (error instanceof TapeError && error.code === 'TAPE_FENCED') lost.abort(error);
    }
  };
  let waiting = 0;
  const look = async () => {
    const now = await store.changes();
    if (now === seen) return;
    seen = now;
    if (!(await store.holds(lease))) lost.abort(fenced(lease.session));
    const items = (await store.inbox(lease.id)).length;
    if (items > waiting) onWaiting?.(items);
    waiting = items;
  };
  // A look that fails says nothing: the next write tells whether the session is still ours.
  const poll = setInterval(() => void look().catch(() => {}), pollMs).unref();
  return {
    get lease() {
      return lease;
    },
    lost: lost.signal,
    drain: async () => {
      await store.drain(lease);
    },
    release: async () => {
      clearInterval(beat);
      clearInterval(poll);
      if (lost.signal.aborted) return;
      while (!(await store.release(lease))) await store.drain(lease);
    },
  };
}

async function acquire(store: TapeStore, ref: string, owner: Owner): Promise<Lease> {
  try {
    return await store.acquire(ref, owner);
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_BUSY') throw error;
    throw new SessionError('SESSION_BUSY', error.message.replace('cannot write', 'cannot run'), {
      data: error.data,
      cause: error,
    });
  }
}
