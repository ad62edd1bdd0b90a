/** How often each thing came about, over all histories. */
export class Tally {
  readonly #counts = new Map<string, number>();

  readonly count = (what: string): void => {
    this.#counts.set(what, this.of(what) + 1);
  };

  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }
}
