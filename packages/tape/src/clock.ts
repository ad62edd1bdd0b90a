import { randomBytes } from 'node:crypto';
import { monotonicFactory } from 'ulid';

/** The clocks that decide whether a lease has expired. */
export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * Milliseconds on a clock that starts with the machine, runs at the same rate in all of its processes, and that no
   * one can set. Undefined where the machine has no such clock; then `now` decides. A caller who replaces `now` replaces both.
   */
  readonly uptime: () => number | undefined;
}

/** Sources of time, ids and randomness; tests replace them with fixed ones. */
export interface Sources extends Clock {
  /** A new ULID. */
  readonly newId: () => string;
  /** 16 random bytes that salt a body's hash. */
  readonly salt: () => Uint8Array;
}

/** Sources on this machine's clock and random generator; `given` replaces some of them. */
export function systemSources(given: Partial<Sources>): Sources {
  const now = given.now ?? Date.now;
  return {
    now,
    uptime: given.uptime ?? (given.now === undefined ? monotonic : () => undefined),
    newId: given.newId ?? newIds(now),
    salt: given.salt ?? salts(),
  };
}

/**
 * Makes ULIDs in order. The factory's own source of randomness is WebCrypto, which takes 3 ms to load; this one takes a
 * byte for each of the 32 letters' places, and 32 divides 256.
 */
export function newIds(now: () => number): () => string {
  const take = pooledBytes();
  const next = monotonicFactory(() => (take(1)[0] ?? 0) / 256);
  return () => next(now());
}

/** The system's monotonic clock, which stands still while the machine sleeps, as heartbeats do. */
function monotonic(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** Makes salts of 16 bytes. */
function salts(): () => Uint8Array {
  const take = pooledBytes();
  return () => take(16);
}

/** A call to `randomBytes` costs ten times what 16 of its bytes do, so each call draws many. */
function pooledBytes(): (count: number) => Uint8Array {
  let pool = new Uint8Array();
  let used = 0;
  return (count) => {
    if (pool.length - used < count) {
      pool = randomBytes(4096);
      used = 0;
    }
    used += count;
    return pool.subarray(used - count, used);
  };
}
