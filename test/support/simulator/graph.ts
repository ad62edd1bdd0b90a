import { MemoryJournal } from '../memory-journal.ts';
import type { Random } from '../seeded.ts';
import { Crash } from './crash.ts';

/** The outcomes of the next appends to the graph file. */
export type GraphFault = 'short' | 'full' | 'torn';

/** The one graph file of all simulated processes. It fails on request. */
export class SimulatedGraph extends MemoryJournal {
  readonly #random: Random;
  #fault: GraphFault | undefined;
  #left = 0;

  constructor(random: Random) {
    super();
    this.#random = random;
  }

  /**
   * `short`: part of an append is written, then it fails; `full`: all fail at once; `torn`: the process ends in one.
   */
  fail(fault: GraphFault, appends: number): void {
    this.#fault = fault;
    this.#left = appends;
  }

  heal(): void {
    this.#left = 0;
    this.failAfter = undefined;
  }

  override append(lines: readonly string[]): void {
    if (this.#left === 0) {
      super.append(lines);
      return;
    }
    this.#left -= 1;
    const bytes = lines.reduce((sum, line) => sum + line.length + 1, 0);
    this.failAfter = this.#fault === 'full' ? 0 : this.#random.below(bytes + 1);
    try {
      super.append(lines);
    } catch (error) {
      throw this.#fault === 'torn' ? new Crash('inside a line of the graph file') : error;
    }
  }
}
