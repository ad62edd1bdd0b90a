import { randomBytes } from 'node:crypto';
import { monotonicFactory } from 'ulid';

/** Where time, ids and randomness come from; all injected, so that a test can fix them. */
export interface Sources {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** A new ULID. */
  readonly newId: () => string;
  /** 16 random bytes that salt a body's hash. */
  readonly salt: () => Uint8Array;
}

/** The machine's clock and randomness. */
export function systemSources(given: Partial<Sources>): Sources {
  const now = given.now ?? Date.now;
  const ulid = monotonicFactory();
  return { now, newId: given.newId ?? (() => ulid(now())), salt: given.salt ?? pooledSalts() };
}

const saltBytes = 16;

/** Asking for randomness costs ten times what 16 bytes of it do, so it is asked for 256 salts at once. */
function pooledSalts(): () => Uint8Array {
  let pool = new Uint8Array();
  return () => {
    if (pool.length === 0) pool = randomBytes(saltBytes * 256);
    const salt = pool.slice(0, saltBytes);
    pool = pool.subarray(saltBytes);
    return salt;
  };
}
