import { randomBytes } from 'node:crypto';
import { linkSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { TapeError } from '../errors.ts';
import { machineProbe, prepareFile } from './place.ts';
import { sync } from './sync.ts';

/** Makes an empty file, of mode 0600, under a name that nobody looks for yet; `keepDraft` gives it its own. */
export function newDraft(file: string): string {
  const draft = `${file}.${randomBytes(6).toString('hex')}.part`;
  try {
    prepareFile(draft, machineProbe);
  } catch (error) {
    dropDraft(draft);
    throw error;
  }
  return draft;
}

/**
 * Gives a finished draft its name, so that there is a whole file or none (M12). An existing file is never replaced.
 * @throws TAPE_EXISTS
 */
export function keepDraft(draft: string, file: string): void {
  // No connection has the draft open by now.
  sync(draft);
  try {
    // A link, unlike a rename, does not replace what is there.
    linkSync(draft, file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
    throw new TapeError('TAPE_EXISTS', `cannot write '${file}': there is a file of that name`, { cause });
  }
  sync(dirname(file));
}

/** Removes a draft, and what SQLite left beside it. One that cannot be removed is left: it does no harm. */
export function dropDraft(draft: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) {
    try {
      rmSync(`${draft}${suffix}`, { force: true });
    } catch {
      // The file is whole under its name, or the act failed for a reason of its own.
    }
  }
}
