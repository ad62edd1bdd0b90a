import type { TapeStore } from '@tapedeck/tape';

/** The state of a walk along merges. `seen` holds the marks already followed, so that the walk ends. */
export interface Walk {
  readonly store: TapeStore;
  readonly seen: Set<string>;
}
