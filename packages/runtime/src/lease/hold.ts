/**
 * The right to write a session, as the runtime holds it: `hold.ts` takes a lease and keeps it alive, `keeper.ts` keeps
 * it over the runs of one session, `drain.ts` takes up its inbox, `settle-leftovers.ts` records what an owner that died had
 * saved of an answer, `patient-store.ts` waits for locks without blocking the thread, `get-active.ts` refuses archived
 * sessions. Imports `telemetry` and `errors`.
 */
import { type Lease, TapeError, type TapeStore } from '@tapedeck/tape';
import {
  type DrainOptions,
  fenced,
  type HandledItem,
  type InboxItem,
  leaseTtlMs,
  type Owner,
} from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import { drainInbox } from './drain.ts';

/** The right to write a session. A heartbeat keeps it alive for the length of a run or an act. */
export interface Hold {
  /** The lease in its newest state. */
  readonly lease: Lease;
  /** Aborts when another owner has taken over the session. */
  readonly lost: AbortSignal;
  /** The pending items of the inbox that the store has reported. */
  inbox(): Promise<readonly InboxItem[]>;
  /**
   * Executes the pending items; `taken` holds the entries that replace the inputs of a run. Call it only at
   * settled points.
   */
  drain(handled?: readonly HandledItem[], o?: DrainOptions): Promise<void>;
  /** Checks the lease and the inbox now instead of at the next poll. */
  look(): Promise<void>;
  /**
   * Drains the inbox and releases the lease. Returns false, and keeps the lease, if `inputs` is true and the
   * inbox holds input for a run.
   */
  release(o?: { readonly inputs?: boolean }): Promise<boolean>;
}

/** The interval at which an owner checks the store for writes, in milliseconds. */
const pollMs = 100;

/**
 * Acquires a session's lease. After each write to the store, calls `onWaiting` with the pending inbox items,
 * if there are any.
 * @throws SESSION_BUSY while another owner holds the lease
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
    /** The verb of the error message. */
    readonly act?: string;
  },
): Promise<Hold> {
  // Undefined, so that the first poll always looks.
  let seen: number | undefined;
  // A store whose owners are on several machines says itself how long a lease lives.
  const limit = store.leaseMs === undefined ? ([] as const) : ([{ ttlMs: store.leaseMs }] as const);
  let lease = await acquire(store, ref, { owner, act, limit });
  const lost = new AbortController();
  // The heartbeat also runs during model calls; `unref` keeps it from keeping the process alive.
  const beat = setInterval(
    () => {
      void extend();
    },
    (store.leaseMs ?? leaseTtlMs) / 3,
  ).unref();
  const extend = async () => {
    try {
      lease = await store.leases.extend(lease, ...limit);
    } catch (error) {
      if (error instanceof TapeError && error.code === 'TAPE_FENCED') lost.abort(error);
    }
  };
  /** The inbox when it was read last. Only its owner takes items from it. */
  let known: { readonly at: number; readonly items: readonly InboxItem[] } | undefined;
  const inbox = async () => {
    const at = await store.changes(lease.id);
    if (known?.at !== at) known = { at, items: await store.inbox.list(lease.id) };
    return known.items;
  };
  const drained = async (options?: DrainOptions) => {
    try {
      return await drainInbox(store, lease, options);
    } finally {
      known = undefined;
    }
  };
  const lookAtInbox = async () => {
    const items = await inbox();
    if (items.length > 0) onWaiting?.(items);
  };
  const look = async () => {
    if (!(await store.leases.holds(lease))) lost.abort(fenced(lease.session));
    known = undefined;
    await lookAtInbox();
  };
  const lookIfChanged = async () => {
    const now = await store.changes(lease.id);
    if (now === seen) return;
    const isFirst = seen === undefined;
    seen = now;
    // The lease was just taken.
    await (isFirst ? lookAtInbox() : look());
  };
  // A failed look is ignored: the next write checks the lease anyway.
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
    inbox,
    drain: async (handled = [], o = {}) => {
      await drained({ taken: handled, ...o });
    },
    release: async ({ inputs = false } = {}) => {
      if (lost.signal.aborted) {
        stop();
        return true;
      }
      // Items that need no run can always be executed; if a drain executes none, the rest is input for a run.
      try {
        while (!(await store.leases.release(lease, { inputs })))
          if ((await drained()) === 0 && inputs) return false;
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
  {
    owner,
    act,
    limit,
  }: {
    readonly owner: Owner;
    readonly act: string;
    readonly limit: readonly [] | readonly [{ readonly ttlMs: number }];
  },
): Promise<Lease> {
  try {
    return await store.leases.acquire(ref, owner, ...limit);
  } catch (error) {
    throw asBusySession(error, act);
  }
}

/** Converts TAPE_BUSY to SESSION_BUSY; returns any other error unchanged. */
export function asBusySession(error: unknown, act: string): unknown {
  if (!(error instanceof TapeError) || error.code !== 'TAPE_BUSY') return error;
  return new SessionError('SESSION_BUSY', error.message.replace('cannot write', `cannot ${act}`), {
    data: error.data,
    cause: error,
  });
}
