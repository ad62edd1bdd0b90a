import { setTimeout as sleep } from 'node:timers/promises';
import { processOwner, TapeError, type TapeStore } from '@tapedeck/tape';
import type { InboxItem } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import { getActive } from './get-active.ts';
import { type Hold, hold } from './hold.ts';

/** How soon a release is tried again that failed, in milliseconds. */
const againMs = 500;

/**
 * The lease of one session in this process: acquired for a run, kept across the runs that follow, and
 * released.
 */
export class LeaseKeeper {
  readonly #store: TapeStore;
  readonly #session: string;
  readonly #onWaiting: (items: readonly InboxItem[]) => void;
  #hold: Hold | undefined;
  /** A lease whose release failed because the store had failed. */
  #kept: Hold | undefined;

  /** `session` is a ULID; for `onWaiting` see `hold`. */
  constructor(store: TapeStore, session: string, onWaiting: (items: readonly InboxItem[]) => void) {
    this.#store = store;
    this.#session = session;
    this.#onWaiting = onWaiting;
  }

  /** The lease, while this process has it. */
  get held(): Hold | undefined {
    return this.#hold;
  }

  /** Whether it has a lease, or one that it could not release. */
  get isInUse(): boolean {
    return this.#hold !== undefined || this.#kept !== undefined;
  }

  /** @throws SESSION_BUSY while another owner holds the lease */
  async take(owner: string): Promise<Hold> {
    await this.#giveBack();
    this.#hold = await hold(this.#store, this.#session, {
      owner: processOwner(owner),
      onWaiting: this.#onWaiting,
    });
    return this.#hold;
  }

  /**
   * Acquires the lease again. Returns undefined if another process has acquired it first, which then serves
   * the inbox, or has archived the session.
   */
  async takeAgain(owner: string): Promise<Hold | undefined> {
    try {
      const held = await this.take(owner);
      await getActive(this.#store, this.#session, 'run');
      return held;
    } catch (error) {
      if (error instanceof SessionError && error.code === 'SESSION_BUSY') return undefined;
      if (!(error instanceof TapeError) || error.code !== 'TAPE_ARCHIVED') throw error;
      await this.drop();
      return undefined;
    }
  }

  /** Releases the lease after a failure. If that fails as well, the next `take` retries it. */
  async drop(): Promise<void> {
    const last = this.#hold;
    await last?.release().catch(() => {
      this.#kept = last;
      // On a server others wait for the session.
      if (this.#store.leaseMs !== undefined) void this.#releaseLater();
    });
  }

  /** Releases a lease that it could not release, as soon as the server lets it. */
  async #releaseLater(): Promise<void> {
    while (this.#kept !== undefined) {
      await sleep(againMs, undefined, { ref: false });
      await this.#giveBack().catch(() => {});
    }
  }

  /** Call it after the lease was released. */
  forget(): void {
    this.#hold = undefined;
  }

  /** @throws the error of the store, as long as the store fails */
  async #giveBack(): Promise<void> {
    try {
      await this.#kept?.release();
    } catch (error) {
      // Fenced: another owner has the lease, so nothing is left to release.
      if (!(error instanceof TapeError) || error.code !== 'TAPE_FENCED') throw error;
    }
    this.#kept = undefined;
  }
}
