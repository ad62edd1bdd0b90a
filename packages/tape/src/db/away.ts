import { setTimeout as sleep } from 'node:timers/promises';
import { TapeError } from '../errors.ts';

/** How long it is waited between two attempts to reach a server that is away, in milliseconds. */
export const againMs = 250;

/** How long a server may be away, as while it restarts, until those who wait for changes get the error. */
export const awayMs = 15_000;

/** Whether an error says that a server cannot be reached: the same can succeed in a moment. */
export function isAway(error: unknown): boolean {
  return error instanceof TapeError && (error.data.reason === 'lost' || error.data.reason === 'unreachable');
}

/** What a reader that follows a home has with a server that restarts. */
export class Patience {
  #since: number | undefined;

  /** Waits a moment after an error of a server that is away. Throws any other, and that of one that is away for too long. */
  async wait(error: unknown): Promise<void> {
    const now = performance.now();
    this.#since ??= now;
    if (!isAway(error) || now - this.#since > awayMs) throw error;
    await sleep(againMs);
  }

  /** The server has answered. */
  renew(): void {
    this.#since = undefined;
  }
}
