import type { Lease, SqliteTapeStore } from '@tapedeck/tape';
import { Crash } from './crash.ts';

/** One simulated process: a handle on the store, its leases, and the place where it will end. */
export class Runtime {
  readonly name: string;
  readonly #open: () => SqliteTapeStore;
  #store: SqliteTapeStore | undefined;
  #pointsLeft: number | undefined;
  readonly leases = new Map<string, Lease>();

  constructor(name: string, open: () => SqliteTapeStore) {
    this.name = name;
    this.#open = open;
  }

  get isUp(): boolean {
    return this.#store !== undefined;
  }

  get store(): SqliteTapeStore {
    if (this.#store === undefined) throw new TypeError(`${this.name} is down`);
    return this.#store;
  }

  /** Ends it at the so-manieth crash point that it passes from now on. */
  crashAfter(points: number): void {
    this.#pointsLeft = points;
  }

  passed(point: string): void {
    if (this.#pointsLeft === undefined) return;
    this.#pointsLeft -= 1;
    if (this.#pointsLeft <= 0) throw new Crash(point);
  }

  start(): void {
    this.#close();
    this.#store = this.#open();
  }

  /** Ends it as a process ends: what was not committed is gone, and leases are not given back. */
  stop(): void {
    this.#pointsLeft = undefined;
    this.#close();
  }

  #close(): void {
    this.leases.clear();
    this.#store?.close();
    this.#store = undefined;
  }
}
