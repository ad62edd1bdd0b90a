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
