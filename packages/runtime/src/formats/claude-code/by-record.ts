import type { CodeRecord } from './records.ts';

/** What is known of records of one file. Their ordinals are its keys: a map needs several times as much memory. */
export class ByRecord<T extends {}> {
  readonly #values: (T | undefined)[] = [];

  /** @param records each of which has the same value at first */
  constructor(records: readonly CodeRecord[] = [], value?: T) {
    for (const { ordinal } of records) this.#values[ordinal] = value;
  }

  get({ ordinal }: CodeRecord): T | undefined {
    return this.#values[ordinal];
  }

  has({ ordinal }: CodeRecord): boolean {
    return this.#values[ordinal] !== undefined;
  }

  set({ ordinal }: CodeRecord, value: T): void {
    this.#values[ordinal] = value;
  }

  delete({ ordinal }: CodeRecord): void {
    this.#values[ordinal] = undefined;
  }
}
