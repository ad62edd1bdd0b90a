import type { JsonObject } from '@tapedeck/tape';

/**
 * Where a longer version of a file can be read from: nothing before it can change any more unless a new record says
 * otherwise, which the format looks for. It is no truth: without it the whole file is read.
 */
export interface OpenEnd {
  /** The conversation that grows. */
  readonly conversation: string;
  /** The line at which it begins. */
  readonly line: number;
  readonly offset: number;
  /** The keys of what the plan makes of the records from there on. */
  readonly keys: ReadonlySet<string>;
  /** The ids of what is before it: a record that has one of them, or names one, is no plain continuation. */
  readonly ids: () => Iterable<string>;
  /** What the format has to know of what is before it. */
  readonly state: JsonObject;
}
