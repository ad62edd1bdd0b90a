/** How long a measurement of the server's time counts, in milliseconds. */
const measuredMs = 60_000;

/** By how many milliseconds the two clocks of this machine may disagree until the time is measured again. */
const stepMs = 1_000;

/** The question for the time on the server, in milliseconds since the epoch: a whole number, which no setting rounds. */
export const timeQuestion = 'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) AS now';

/** Its row: `pg` reads a bigint as a text. */
export interface Answered {
  readonly now: number | string;
}

/** The clocks of this machine: one that people and programs set, and one that only runs. */
interface OwnClocks {
  readonly now: number;
  readonly running: number;
}

const ownClocks = (): OwnClocks => ({ now: Date.now(), running: performance.now() });

/**
 * The time on the server, by which leases of several machines are compared: that of this machine, and what it differs by.
 * The difference is measured again after a minute, and as soon as someone has set the clock of this machine.
 */
export class ServerClock {
  #offset = 0;
  #measured: OwnClocks | undefined;

  readonly now = (): number => Date.now() + this.#offset;

  /** Whether it is time to ask the server. */
  get isDue(): boolean {
    const before = this.#measured;
    if (before === undefined) return true;
    const { now, running } = ownClocks();
    const passed = running - before.running;
    return passed >= measuredMs || Math.abs(now - before.now - passed) >= stepMs;
  }

  /** Asks the server, which answers with the row of `timeQuestion`, and perhaps more. */
  async measure<Said extends Answered>(ask: () => Promise<Said>): Promise<Said> {
    const from = this.#begin();
    const said = await ask();
    this.#note(said, from);
    return said;
  }

  /** The same where the answer is waited for. */
  measureNow(ask: () => Answered): void {
    const from = this.#begin();
    this.#note(ask(), from);
  }

  /** Others do not ask meanwhile. */
  #begin(): OwnClocks {
    this.#measured = ownClocks();
    return this.#measured;
  }

  #note({ now }: Answered, from: OwnClocks): void {
    this.#measured = ownClocks();
    // The server has answered halfway.
    this.#offset = Math.round(Number(now) - (from.now + this.#measured.now) / 2);
  }
}
