import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { lockFile } from './file-lock.ts';

/**
 * Replaces a file with the text that `change` returns, atomically, and resolves once it is on disk; `undefined` changes
 * nothing. Locks the file against other processes. Keeps the mode of a file.
 * @param act what the user wants, for the error: `record trust`
 * @throws ConfigError when another process keeps the lock
 */
export async function replaceFile(
  file: string,
  act: string,
  change: () => string | undefined | Promise<string | undefined>,
): Promise<void> {
  const lock = await lockFile(file, act);
  const draft = `${file}.draft`;
  try {
    const text = await change();
    if (text === undefined) return;
    try {
      write(draft, file, text);
      if (!lock.isHeld()) throw new Error('another process took the lock meanwhile');
      renameSync(draft, file);
      syncDirectory(dirname(file));
    } catch (cause) {
      rmSync(draft, { force: true });
      throw new Error(`cannot ${act}: ${(cause as Error).message}`, { cause });
    }
  } finally {
    lock.release();
  }
}

function write(draft: string, file: string, text: string): void {
  // A killed process may have left one, and only who has the lock writes it.
  rmSync(draft, { force: true });
  const fd = openSync(draft, 'wx', 0o600);
  try {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode;
    if (mode !== undefined) fchmodSync(fd, mode & 0o777);
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
