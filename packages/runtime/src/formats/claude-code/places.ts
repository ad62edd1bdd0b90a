import { ByRecord } from './by-record.ts';
import type { CompactedPath } from './compactions-again.ts';
import type { CodeRecord } from './records.ts';

/** Where the records of a tree are on the ways through it: each way has what the one that it forks from has before there. */
export class Places {
  readonly #owners = new ByRecord<number>();
  readonly #depths = new ByRecord<number>();
  readonly #ways: { readonly shared: number; readonly from: number | undefined }[] = [];

  /** Adds a way: its steps behind those that it shares. Those that it has again are at home on another one. */
  add({ own, again }: CompactedPath, shared: number, from?: number): void {
    for (const [i, record] of own.entries()) {
      if (again.has(record)) continue;
      this.#owners.set(record, this.#ways.length);
      this.#depths.set(record, shared + i);
    }
    this.#ways.push({ shared, from });
  }

  /** The way that brought a record. */
  ownerOf(record: CodeRecord): number | undefined {
    return this.#owners.get(record);
  }

  /** How many steps precede a record on the ways that have it. */
  depthOf(record: CodeRecord): number | undefined {
    return this.#depths.get(record);
  }

  /** Whether a way has a record. */
  has(way: number, record: CodeRecord): boolean {
    const owner = this.#owners.get(record);
    const depth = this.#depths.get(record) ?? 0;
    if (owner === undefined) return false;
    for (let at: number | undefined = way; at !== undefined; at = this.#ways[at]?.from) {
      if (at === owner) return true;
      if (depth >= (this.#ways[at]?.shared ?? 0)) return false;
    }
    return false;
  }
}
