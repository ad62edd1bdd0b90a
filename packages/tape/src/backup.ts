import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { TapeError } from './errors.ts';
import { cannotOpen, machineProbe, prepareFile } from './place.ts';
import type { Db } from './sqlite.ts';

/**
 * Copies a database that is in use to a new file, checks the copy, and only then gives it its name: there is a whole
 * backup or none (M12). Mode 0600 from the beginning; an existing file is never replaced.
 * @throws TAPE_EXISTS, TAPE_CORRUPT when the copy does not verify, TAPE_IO
 */
export async function backupTo(
  db: Db,
  file: string,
  check: (copy: string) => Iterable<{ readonly message: string }>,
): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}.part`;
  try {
    prepareFile(draft, machineProbe);
    await db.backup(draft);
    for (const problem of check(draft))
      throw new TapeError(
        'TAPE_CORRUPT',
        `cannot back up to '${file}': the copy does not verify: ${problem.message}`,
      );
    sync(draft);
    // A link, unlike a rename, does not replace what is there.
    linkSync(draft, file);
    sync(dirname(file));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST')
      throw new TapeError('TAPE_EXISTS', `cannot back up to '${file}': there is a file of that name`, {
        cause: error,
      });
    if (error instanceof TapeError) throw error;
    throw cannotOpen(file, message, error);
  } finally {
    for (const suffix of ['', '-wal', '-shm', '-journal']) removeDraft(`${draft}${suffix}`);
  }
}

/** A draft that cannot be removed is left: it does no harm, and the backup is whole, or failed for a reason of its own. */
function removeDraft(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}

/** The copy is closed by now, so opening it here drops nobody's locks. */
function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
