import { expect } from 'vitest';
import { atFullSize } from './size.ts';
import { memoryVariable } from './temp-in-memory.ts';

/** At full size the tests of processes use the disk; not again on the second kind of a store. */
function usesDisk(): boolean {
  const { testPath = '' } = expect.getState();
  return atFullSize && process.env.TAPEDECK_STORE === undefined && testPath.includes('/test/integration/');
}

/** Of a project with this file of set-up, the temporary files are in memory, and those of the processes that it starts. */
const { [memoryVariable]: dir } = process.env;
if (dir !== undefined) {
  // The files of a project share a process.
  if (usesDisk()) delete process.env.TMPDIR;
  else process.env.TMPDIR = dir;
}
