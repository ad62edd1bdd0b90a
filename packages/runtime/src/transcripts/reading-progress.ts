import type { OnProgress } from '@tapedeck/tape/store';
import type { FoundFile } from '../discovery/index.ts';

/** Less is read at once. */
const shownBytes = 256 * 1024;

/** For each file of several, what counts its bytes among those of all. */
export function readingOf(
  files: readonly FoundFile[],
  onRead: OnProgress,
): (file: FoundFile) => (bytes: number) => void {
  const total = files.reduce((sum, { facts }) => sum + facts.size, 0);
  const read = new Map<FoundFile, number>();
  return (file) => (bytes) => {
    if (total < shownBytes) return;
    // A compressed file gives more bytes than it has.
    read.set(file, Math.min(bytes, file.facts.size));
    onRead({ done: [...read.values()].reduce((sum, one) => sum + one, 0), total });
  };
}
