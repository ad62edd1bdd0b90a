import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/** Where a process can end while it writes a graph file: around each write and its sync. */
export const journalPoints = [
  'journal/before-write',
  'journal/torn',
  'journal/written',
  'journal/synced',
] as const;

export type JournalPoint = (typeof journalPoints)[number];

/**
 * From now on, this process's writes to a file pass these points. About half of them are short ones, which stop inside
 * a line, as a system may do at any time: `cut` says after how many of the bytes, or after all.
 */
export function watchJournal(
  path: string,
  { passed, cut }: { passed: (point: JournalPoint) => void; cut: (bytes: number) => number },
): void {
  const { openSync, writeSync, fdatasyncSync } = fs;
  const watched = new Set<number>();
  Object.assign(fs, {
    openSync: (file: string, ...rest: [number, number?]) => {
      const fd = openSync(file, ...rest);
      if (file === path) watched.add(fd);
      else watched.delete(fd);
      return fd;
    },
    writeSync: (fd: number, bytes: Buffer, offset: number, length: number, position: null) => {
      if (!watched.has(fd)) return writeSync(fd, bytes, offset, length, position);
      passed('journal/before-write');
      const written = writeSync(fd, bytes, offset, cut(length), position);
      passed(written < length ? 'journal/torn' : 'journal/written');
      return written;
    },
    fdatasyncSync: (fd: number) => {
      fdatasyncSync(fd);
      if (watched.has(fd)) passed('journal/synced');
    },
  });
  syncBuiltinESMExports();
}
