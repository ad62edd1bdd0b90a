/**
 * A log of events that any number of readers can read from the first event, repeatedly, while it grows.
 * Reading ends when the log is closed.
 */
export class EventLog<T> implements AsyncIterable<T> {
  readonly #events: T[] = [];
  #closed = false;
  #wake: PromiseWithResolvers<void> = Promise.withResolvers();

  push(event: T): void {
    this.#events.push(event);
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  close(): void {
    this.#closed = true;
    this.#wake.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (let i = 0; ; ) {
      const event = this.#events[i];
      if (event !== undefined) {
        i += 1;
        yield event;
      } else if (this.#closed) return;
      else await this.#wake.promise;
    }
  }
}
