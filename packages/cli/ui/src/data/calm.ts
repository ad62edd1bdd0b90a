/** How long changes are collected, at least, in milliseconds. */
const least = 400;

/** How many times as long as an act took nothing is done after it: what costs more is done less often. */
const rest = 4;

/**
 * Does something for changes: at once for the first, and once for all that come while it is done or shortly after. So
 * a home that is written to without an end keeps no one busy for more than a fifth of the time.
 */
export class Calm {
  readonly #act: () => unknown;
  readonly #pause: number;
  #isBusy = false;
  #isDue = false;
  #isStopped = false;

  /** `act` may return a promise, and says itself what failed. */
  constructor(act: () => unknown, pause: number = least) {
    this.#act = act;
    this.#pause = pause;
  }

  /** Says that something changed. */
  changed(): void {
    this.#isDue = true;
    if (!this.#isBusy) void this.#run();
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #run(): Promise<void> {
    this.#isBusy = true;
    while (this.#isDue && !this.#isStopped) {
      this.#isDue = false;
      const began = performance.now();
      await this.#act();
      const pause = Math.max(this.#pause, rest * (performance.now() - began));
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    this.#isBusy = false;
  }
}
