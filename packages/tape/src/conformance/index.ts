import { appendChapter } from './append.ts';
import type { Open, Runner } from './contract.ts';
import { forkChapter } from './fork.ts';
import { leaseChapter } from './lease.ts';
import { mergeChapter } from './merge.ts';
import { readChapter } from './read.ts';
import { rewindChapter } from './rewind.ts';
import { stageChapter } from './stage.ts';

export type { Matchers, Open, Runner } from './contract.ts';

/**
 * What every `TapeStore` promises, as cases of the runner that calls it:
 *
 *     import { expect, test } from 'vitest';
 *     tapeStoreContract({ test, expect }, () => openTapeStore(':memory:'));
 */
export function tapeStoreContract(runner: Runner, open: Open): void {
  appendChapter(runner, open);
  readChapter(runner, open);
  forkChapter(runner, open);
  mergeChapter(runner, open);
  rewindChapter(runner, open);
  leaseChapter(runner, open);
  stageChapter(runner, open);
}
