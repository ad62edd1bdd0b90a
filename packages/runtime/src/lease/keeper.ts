import { type InboxItem, processOwner, TapeError, type TapeStore } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import { getActive } from './get-active.ts';
import { type Hold, hold } from './hold.ts';

/** The lease of one session in this process: taken for a run, kept over the runs after it, and given back. */
export class LeaseKeeper {
  readonly #store: TapeStore;
  readonly #session: string;
  readonly #onWaiting: (items: readonly InboxItem[]) => void;
  #hold: Hold | undefined;
  /** A lease that could not be given back, because the store had failed. */
  #kept: Hold | undefined;

  /** `session` is a ULID; `onWaiting` is told what waits in its inbox, as `hold` says. */
  constructor(store: TapeStore, session: string, onWaiting: (items: readonly InboxItem[]) => void) {
    this.#store = store;
    this.#session = session;
    this.#onWaiting = onWaiting;
  }

  /** The right to write the session, while this process has it. */
  get held(): Hold | undefined {
    return this.#hold;
  }

  /** @throws SESSION_BUSY when somebody else is writing the session */
  async take(owner: string): Promise<Hold> {
    await this.#giveBack();
    this.#hold = await hold(this.#store, this.#session, {
      owner: processOwner(owner),
      onWaiting: this.#onWaiting,
    });
    return this.#hold;
  }

  /** The lease once more; nothing when somebody else was quicker, who has the inbox then, or has archived the session. */
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

  /** Gives the lease back after a failure. When that fails too, the next `take` tries it again. */
  async drop(): Promise<void> {
    const last = this.#hold;
    await last?.release().catch(() => {
      this.#kept = last;
    });
  }

  /** The lease was given back. */
  forget(): void {
    this.#hold = undefined;
  }

  /** @throws what the store fails with, as long as it does */
  async #giveBack(): Promise<void> {
    try {
      await this.#kept?.release();
    } catch (error) {
      // Somebody else has it by now.
      if (!(error instanceof TapeError) || error.code !== 'TAPE_FENCED') throw error;
    }
    this.#kept = undefined;
  }
}
