/**
 * A log of events that any number of readers can read from the first event, repeatedly, while it grows.
 * Reading ends when the log is closed.
 */
export class EventLog<T> implements AsyncIterable<T> {
  readonly #events: T[] = [];
  #closed = false;
  /** What the readers at the end wait for. */
  #wake: PromiseWithResolvers<void> | undefined;

  push(event: T): void {
    this.#events.push(event);
    this.#notify();
  }

  close(): void {
    this.#closed = true;
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (let i = 0; ; ) {
      const event = this.#events[i];
      if (event !== undefined) {
        i += 1;
        yield event;
      } else if (this.#closed) return;
      else {
        this.#wake ??= Promise.withResolvers();
        await this.#wake.promise;
      }
    }
  }

  #notify(): void {
    this.#wake?.resolve();
    this.#wake = undefined;
  }
}
