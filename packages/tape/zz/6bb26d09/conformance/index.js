/**
 * The contract of a `TapeStore` as test cases, for every store and every test runner.
 *
 * @privateRemarks
 * One file per group of methods. Imports `entry`, `errors` and, from `store`, `merge` and `tape`, types only.
 *
 * @module @tapedeck/tape/store/conformance
 */
import { appendChapter } from './append.js';
import { conflictChapter } from './conflict.js';
import { contentChapter } from './content.js';
                                                                   
import { doneChapter } from './done.js';
import { forkChapter } from './fork.js';
import { leaseChapter } from './lease.js';
import { mergeChapter } from './merge.js';
import { optionsChapter } from './options.js';
import { readChapter } from './read.js';
import { restartChapter } from './restart.js';
import { resultChapter } from './result.js';
import { rewindChapter } from './rewind.js';
import { stageChapter } from './stage.js';

                                                                             

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
  runner        ,
  open      ,
  { place }                                                                        = {},
)       {
  appendChapter(runner, open);
  readChapter(runner, open);
  forkChapter(runner, open);
  doneChapter(runner, open);
  mergeChapter(runner, open);
  resultChapter(runner, open);
  conflictChapter(runner, open);
  rewindChapter(runner, open);
  leaseChapter(runner, open);
  stageChapter(runner, open);
  contentChapter(runner, open);
  optionsChapter(runner, open);
  if (place !== undefined) restartChapter(runner, place);
}
