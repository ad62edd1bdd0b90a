import type { TapeStore } from '@tapedeck/tape';

/** A walk along merges: what was met before is not followed again, so that it comes to an end and to no more than there is. */
export interface Walk {
  readonly store: TapeStore;
  readonly seen: Set<string>;
}
