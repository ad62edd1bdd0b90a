import { Backlog, type BacklogLimit } from './backlog.ts';

/** How values wait for the readers of a broadcast. */
export interface BroadcastOptions<T> {
  readonly limit: BacklogLimit;
  readonly sizeOf: (value: T) => number;
  /** Makes the value that a reader gets in place of those that it missed. */
  readonly lagged: (missed: number) => T;
}

/** Sends each value to all current listeners; keeps nothing for later ones. */
export class Broadcast<T> {
  readonly #options: BroadcastOptions<T>;
  readonly #listeners = new Set<(value: T, size: number) => void>();

  constructor(options: BroadcastOptions<T>) {
    this.#options = options;
  }

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  send(value: T): void {
    if (this.#listeners.size === 0) return;
    const size = this.#options.sizeOf(value);
    for (const listener of this.#listeners) listener(value, size);
  }

  /**
   * The values sent from this call on, until the signal aborts or the reader returns. Buffers for a slow reader up to
   * the limit; beyond it the reader gets a value that says how many it missed.
   */
  listen(signal?: AbortSignal): AsyncIterableIterator<T> {
    const { limit, lagged } = this.#options;
    const backlog = new Backlog<T>(limit);
    let isOver = signal?.aborted === true;
    let wake: PromiseWithResolvers<void> | undefined;
    const notify = () => {
      wake?.resolve();
      wake = undefined;
    };
    const listener = (value: T, size: number) => {
      backlog.push(value, size);
      notify();
    };
    const leave = () => {
      isOver = true;
      this.#listeners.delete(listener);
      signal?.removeEventListener('abort', leave);
      notify();
    };
    if (!isOver) {
      this.#listeners.add(listener);
      signal?.addEventListener('abort', leave, { once: true });
    }
    const done = { done: true, value: undefined } as const;
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      async next() {
        while (!isOver) {
          const missed = backlog.missed();
          if (missed > 0) return { done: false, value: lagged(missed) };
          const first = backlog.take();
          if (first !== undefined) return { done: false, value: first.value };
          wake ??= Promise.withResolvers();
          await wake.promise;
        }
        return done;
      },
      async return() {
        leave();
        return done;
      },
    };
  }
}
