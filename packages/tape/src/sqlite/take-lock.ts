import { closeSync, openSync } from 'node:fs';
import { isLocked } from './lock-wait.ts';
import { SqliteDb } from './sqlite.ts';

/**
 * Takes the lock on a file that is there for it alone and stays empty: SQLite's own, which the system takes back when the
 * process ends, however that is. Makes the file, with mode 0600. Undefined while another process has it.
 * @throws what the file system says; TAPE_CANNOT_OPEN, TAPE_IO
 */
export function takeLock(file: string): { release(): void } | undefined {
  closeSync(openSync(file, 'a', 0o600));
  const db = new SqliteDb(file);
  db.lockWaitMs = 0;
  try {
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    db.close();
    if (isLocked(error)) return undefined;
    throw error;
  }
  return { release: () => db.close() };
}
