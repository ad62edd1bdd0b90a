/** Sends each value to all current listeners; keeps nothing for later ones. */
export class Broadcast<T> {
  readonly #listeners = new Set<(value: T) => void>();

  send(value: T): void {
    for (const listener of this.#listeners) listener(value);
  }

  /**
   * The values sent from this call on, until the signal aborts or the reader returns. Buffers for a slow
   * reader.
   */
  listen(signal?: AbortSignal): AsyncGenerator<T> {
    let waiting: T[] = [];
    const isOver = () => signal?.aborted === true;
    let wake = Promise.withResolvers<void>();
    const notify = () => {
      wake.resolve();
      wake = Promise.withResolvers();
    };
    const listener = (value: T) => {
      waiting.push(value);
      notify();
    };
    const leave = () => {
      this.#listeners.delete(listener);
      notify();
    };
    this.#listeners.add(listener);
    signal?.addEventListener('abort', leave, { once: true });
    return (async function* () {
      try {
        while (!isOver()) {
          if (waiting.length === 0) await wake.promise;
          const batch = waiting;
          waiting = [];
          for (const value of batch) {
            if (isOver()) return;
            yield value;
          }
        }
      } finally {
        leave();
        signal?.removeEventListener('abort', leave);
      }
    })();
  }
}
