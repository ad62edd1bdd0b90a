import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { TapeError } from '../errors.ts';
import { cannotOpen, machineProbe, prepareFile } from './place.ts';
import { sync } from './sync.ts';

/**
 * Creates an empty file, mode 0600, under a temporary name; `keepDraft` gives it its final name.
 * @throws TAPE_EXISTS
 */
export function newDraft(file: string): string {
  if (!existsSync(dirname(file))) throw cannotOpen(file, `there is no directory '${dirname(file)}'`);
  // What takes long to write fails before it does.
  if (existsSync(file)) throw thereIs(file);
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
 * Gives a finished draft its final name, so that a complete file exists or none. Never replaces an existing
 * file.
 * @throws TAPE_EXISTS
 */
export function keepDraft(draft: string, file: string): void {
  // No connection has the draft open any more.
  sync(draft);
  try {
    // A link, unlike a rename, does not replace an existing file.
    linkSync(draft, file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
    throw thereIs(file, cause);
  }
  sync(dirname(file));
}

function thereIs(file: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_EXISTS', `cannot write '${file}': the file exists`, { cause });
}

/** Removes a draft and the files that SQLite left beside it. A draft that cannot be removed does no harm. */
export function dropDraft(draft: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) {
    try {
      rmSync(`${draft}${suffix}`, { force: true });
    } catch {
      // The file is complete under its final name, or the act has failed with an error of its own.
    }
  }
}
