import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { sized } from './size.ts';

const memory = '/dev/shm';
/** What the files of a push take at most, with room to spare, in bytes. */
const needed = 4e9;

/**
 * Keeps the temporary files of a push in memory where there is room for them: a sync to a disk takes milliseconds,
 * and the tests make tens of thousands. The full size uses the disk, and so does a push that is given a `TMPDIR`.
 */
export default function tempInMemory(): (() => void) | undefined {
  if (!sized(true, false, false) || process.env.TMPDIR !== undefined || roomIn(memory) < needed) return;
  const dir = mkdtempSync(`${memory}/tapedeck-tests-`);
  process.env.TMPDIR = dir;
  return () => {
    delete process.env.TMPDIR;
    rmSync(dir, { recursive: true, force: true });
  };
}

/** Free bytes of a file system; 0 without it. */
function roomIn(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
