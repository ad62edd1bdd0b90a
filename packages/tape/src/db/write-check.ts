/** What looks at each transaction that writes. */
export interface Watching {
  /** Called before it writes: where it throws, nothing is written. */
  readonly before: () => void;
  /** Called behind what it writes. What it returns is called once that is committed. */
  readonly behind?: () => () => void;
}

/** Calls what looks at transactions that write, while an act runs. */
export class WriteCheck {
  #watching: Watching | undefined;
  #onCommit: (() => void) | undefined;

  /** Runs `act`, with `watching` in place of another one. */
  during<T>(watching: Watching, act: () => T): T {
    const before = this.#watching;
    this.#watching = watching;
    try {
      return act();
    } finally {
      this.#watching = before;
    }
  }

  /**
   * Runs what a transaction writes.
   * @throws what keeps it from that
   */
  run<T>(act: () => T): T {
    this.#onCommit = undefined;
    this.#watching?.before();
    const result = act();
    this.#onCommit = this.#watching?.behind?.();
    return result;
  }

  /** Called once that is committed. */
  committed(): void {
    this.#onCommit?.();
    this.#onCommit = undefined;
  }
}

/** Runs a transaction, or what else makes a check, which begins anew behind what the check has to do first. */
export function doingFirst<T>(act: () => T): T {
  for (;;) {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof ToDoFirst)) throw error;
      error.act();
    }
  }
}

/** Thrown by a check that has something to do for which no other process should wait: the transaction is undone before it. */
export class ToDoFirst extends Error {
  readonly act: () => void;

  constructor(act: () => void) {
    super('a check has something to do before the transaction');
    this.act = act;
  }
}
