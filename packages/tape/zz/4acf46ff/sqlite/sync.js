import { closeSync, fsyncSync, openSync } from 'node:fs';

/**
 * Syncs a file or directory listing to disk. Not for an open database: closing the descriptor would drop
 * SQLite's locks.
 */
export function sync(path        )       {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
