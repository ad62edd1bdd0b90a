/** What each transaction that writes begins with, while an act runs. */
export class WriteCheck {
  #check: (() => void) | undefined;

  /** Runs `act`, with `check` in place of another one. */
  during<T>(check: () => void, act: () => T): T {
    const before = this.#check;
    this.#check = check;
    try {
      return act();
    } finally {
      this.#check = before;
    }
  }

  /** @throws what the check throws */
  run(): void {
    this.#check?.();
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
