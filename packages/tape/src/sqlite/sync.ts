import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Waits until a file, or what a directory lists, is on disk. Never for a database: closing it would drop SQLite's locks. */
export function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
