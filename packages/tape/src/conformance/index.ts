/**
 * The contract of a `TapeStore` as test cases, for every store and every test runner.
 *
 * @privateRemarks
 * One file per group of methods. Imports `entry`, `errors` and, from `store`, `merge` and `tape`, types only.
 *
 * @module @tapedeck/tape/store/conformance
 */
import { appendChapter } from './append.ts';
import { conflictChapter } from './conflict.ts';
import { contentChapter } from './content.ts';
import type { Open, ReopenablePlace, Runner } from './contract.ts';
import { deleteChapter } from './delete.ts';
import { doneChapter } from './done.ts';
import { firstChapter } from './first.ts';
import { forkChapter } from './fork.ts';
import { identityChapter } from './identity.ts';
import { leaseChapter } from './lease.ts';
import { mergeChapter } from './merge.ts';
import { optionsChapter } from './options.ts';
import { readChapter } from './read.ts';
import { restartChapter } from './restart.ts';
import { resultChapter } from './result.ts';
import { rewindChapter } from './rewind.ts';
import { stageChapter } from './stage.ts';

export type { Matchers, Open, ReopenablePlace, Runner } from './contract.ts';

/**
 * Defines the contract of every `TapeStore` as test cases of the given runner:
 *
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 * import { tapeStoreContract } from '@tapedeck/tape/store/conformance';
 * import { expect, test } from 'vitest';
 *
 * tapeStoreContract({ test, expect }, () => openTapeStore(':memory:'));
 * ```
 *
 * `place` creates a new, empty place for each case. With it, further cases cover what survives a restart, and
 * two stores at once.
 */
export function tapeStoreContract(
  runner: Runner,
  open: Open,
  { place }: { readonly place?: () => ReopenablePlace | Promise<ReopenablePlace> } = {},
): void {
  appendChapter(runner, open);
  readChapter(runner, open);
  forkChapter(runner, open);
  firstChapter(runner, open);
  doneChapter(runner, open);
  mergeChapter(runner, open);
  resultChapter(runner, open);
  conflictChapter(runner, open);
  rewindChapter(runner, open);
  leaseChapter(runner, open);
  stageChapter(runner, open);
  deleteChapter(runner, open);
  identityChapter(runner, open);
  contentChapter(runner, open);
  optionsChapter(runner, open);
  if (place !== undefined) restartChapter(runner, place);
}
