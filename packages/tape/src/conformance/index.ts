/**
 * The contract of a `TapeStore` as test cases, for every store and every test runner: one file for each group of acts.
 * Imports `store`, of which it takes the interface alone, `entry` and `errors`.
 */
import { appendChapter } from './append.ts';
import { contentChapter } from './content.ts';
import type { Open, ReopenablePlace, Runner } from './contract.ts';
import { doneChapter } from './done.ts';
import { forkChapter } from './fork.ts';
import { leaseChapter } from './lease.ts';
import { mergeChapter } from './merge.ts';
import { readChapter } from './read.ts';
import { restartChapter } from './restart.ts';
import { rewindChapter } from './rewind.ts';
import { stageChapter } from './stage.ts';

export type { Matchers, Open, ReopenablePlace, Runner } from './contract.ts';

/**
 * What every `TapeStore` promises, as cases of the runner that calls it:
 *
 *     import { expect, test } from 'vitest';
 *     tapeStoreContract({ test, expect }, () => openTapeStore(':memory:'));
 *
 * With `place`, which makes a new, empty place each time, also what outlives a store: the same acts again after a
 * restart, and two stores at once.
 */
export function tapeStoreContract(
  runner: Runner,
  open: Open,
  { place }: { readonly place?: () => ReopenablePlace | Promise<ReopenablePlace> } = {},
): void {
  appendChapter(runner, open);
  readChapter(runner, open);
  forkChapter(runner, open);
  doneChapter(runner, open);
  mergeChapter(runner, open);
  rewindChapter(runner, open);
  leaseChapter(runner, open);
  stageChapter(runner, open);
  contentChapter(runner, open);
  if (place !== undefined) restartChapter(runner, place);
}
