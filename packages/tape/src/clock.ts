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
    salt: given.salt ?? pooledSalts(),
  };
}

/** Makes ULIDs in order. Its own source of randomness would load a second module of Node.js, and ask it for each character. */
function newIds(now: () => number): () => string {
  let pool = new Uint8Array();
  const next = monotonicFactory(() => {
    if (pool.length === 0) pool = randomBytes(idChars);
    const [byte = 0] = pool;
    pool = pool.subarray(1);
    return byte / 256;
  });
  return () => next(now());
}

/** Number of random characters of a ULID, each of five bits. */
const idChars = 16;

/** The system's monotonic clock, which stands still while the machine sleeps, as heartbeats do. */
function monotonic(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

const saltBytes = 16;

/** A call to `randomBytes` costs ten times what 16 of its bytes do, so each call draws 256 salts. */
function pooledSalts(): () => Uint8Array {
  let pool = new Uint8Array();
  return () => {
    if (pool.length === 0) pool = randomBytes(saltBytes * 256);
    const salt = pool.slice(0, saltBytes);
    pool = pool.subarray(saltBytes);
    return salt;
  };
}
