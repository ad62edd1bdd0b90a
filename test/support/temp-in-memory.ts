import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';

/** The variable of the environment that names the directory that a run made. */
export const memoryVariable = 'TAPEDECK_TEST_MEMORY';

const memory = '/dev/shm';
/** What the files of a run take at most, with room to spare, in bytes. */
const needed = 4e9;

/**
 * Makes a directory for temporary files in memory, where there is room for them: a sync to a disk takes milliseconds, and
 * the tests make tens of thousands. A run that is given a `TMPDIR` uses that alone.
 */
export default function tempInMemory(): (() => void) | undefined {
  // A run inside of another inherits the directory of that one.
  delete process.env[memoryVariable];
  if (process.env.TMPDIR !== undefined || roomIn(memory) < needed) return;
  const dir = mkdtempSync(`${memory}/tapedeck-tests-`);
  // Tests of other users let them into a directory in it.
  chmodSync(dir, 0o711);
  process.env[memoryVariable] = dir;
  return () => {
    delete process.env[memoryVariable];
    rmSync(dir, { recursive: true, force: true });
  };
}

/** Free bytes of a file system; 0 without it. */
export function roomIn(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
