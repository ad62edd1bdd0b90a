/**
 * The right to write a session, as the runtime holds it: `hold.ts` takes a lease and keeps it alive, `keeper.ts` keeps
 * it over the runs of one session, `patient-store.ts` waits for locks without blocking the thread, `need-active.ts`
 * refuses archived sessions. Imports `errors`.
 */
import {
  type DrainOptions,
  fenced,
  type InboxItem,
  type Lease,
  leaseTtlMs,
  type Owner,
  type Taken,
  TapeError,
  type TapeStore,
} from '@tapedeck/tape';
import { SessionError } from '../errors.ts';

/** The right to write a session, kept alive by a heartbeat while a run or an act lasts. */
export interface Hold {
  /** The lease as it stands now. */
  readonly lease: Lease;
  /** Aborted when another owner has taken the session over. */
  readonly lost: AbortSignal;
  /** What waits in the inbox. */
  inbox(): Promise<readonly InboxItem[]>;
  /** Does what arrived in the inbox, and what `taken` says of the rest. Call it at settled points only. */
  drain(taken?: readonly Taken[], o?: DrainOptions): Promise<void>;
  /** Looks now whether somebody else has written, instead of at the next poll. */
  look(): Promise<void>;
  /** Empties the inbox and gives the lease back; false when it holds something for a run that `inputs` asks about. */
  release(o?: { readonly inputs?: boolean }): Promise<boolean>;
}

/** How often an owner looks whether somebody else has written, in milliseconds. */
const pollMs = 100;

/**
 * Takes a session's lease. `onWaiting` is told what waits in the inbox, each time that somebody has written to the store and
 * something does.
 * @throws SESSION_BUSY when someone else is writing it
 */
export async function hold(
  store: TapeStore,
  ref: string,
  {
    owner,
    onWaiting,
    act = 'run',
  }: {
    readonly owner: Owner;
    readonly onWaiting?: ((items: readonly InboxItem[]) => void) | undefined;
    /** What cannot be done, where somebody else is writing it. */
    readonly act?: string;
  },
): Promise<Hold> {
  // The first poll looks in any case.
  let seen: number | undefined;
  let lease = await acquire(store, ref, { owner, act });
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
  const look = async () => {
    if (!(await store.holds(lease))) lost.abort(fenced(lease.session));
    const items = await store.inbox(lease.id);
    if (items.length > 0) onWaiting?.(items);
  };
  const lookIfChanged = async () => {
    const now = await store.changes();
    if (now === seen) return;
    seen = now;
    await look();
  };
  // A look that fails says nothing: the next write tells whether the session is still ours.
  const poll = setInterval(() => void lookIfChanged().catch(() => {}), pollMs).unref();
  const stop = () => {
    clearInterval(beat);
    clearInterval(poll);
  };
  return {
    get lease() {
      return lease;
    },
    lost: lost.signal,
    look,
    inbox: async () => await store.inbox(lease.id),
    drain: async (taken = [], o = {}) => {
      await store.drain(lease, taken, o);
    },
    release: async ({ inputs = false } = {}) => {
      if (lost.signal.aborted) {
        stop();
        return true;
      }
      // What does not concern a run can always be done; when all of that is gone, what is left does.
      try {
        while (!(await store.release(lease, { inputs })))
          if ((await store.drain(lease)) === 0 && inputs) return false;
      } catch (error) {
        stop();
        throw error;
      }
      stop();
      return true;
    },
  };
}

async function acquire(
  store: TapeStore,
  ref: string,
  { owner, act }: { readonly owner: Owner; readonly act: string },
): Promise<Lease> {
  try {
    return await store.acquire(ref, owner);
  } catch (error) {
    throw asBusySession(error, act);
  }
}

/** That somebody else is writing a session, as the runtime tells it; any other error as it is. */
export function asBusySession(error: unknown, act: string): unknown {
  if (!(error instanceof TapeError) || error.code !== 'TAPE_BUSY') return error;
  return new SessionError('SESSION_BUSY', error.message.replace('cannot write', `cannot ${act}`), {
    data: error.data,
    cause: error,
  });
}
