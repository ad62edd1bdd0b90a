import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { TapeError } from '../errors.js';
import { cannotOpen, machineProbe, prepareFile } from './place.js';
import { sync } from './sync.js';

/** Creates an empty file, mode 0600, under a temporary name; `keepDraft` gives it its final name. */
export function newDraft(file        )         {
  if (!existsSync(dirname(file))) throw cannotOpen(file, `there is no directory '${dirname(file)}'`);
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
export function keepDraft(draft        , file        )       {
  // No connection has the draft open any more.
  sync(draft);
  try {
    // A link, unlike a rename, does not replace an existing file.
    linkSync(draft, file);
  } catch (cause) {
    if ((cause                         ).code !== 'EEXIST') throw cause;
    throw new TapeError('TAPE_EXISTS', `cannot write '${file}': the file exists`, { cause });
  }
  sync(dirname(file));
}

/** Removes a draft and the files that SQLite left beside it. A draft that cannot be removed does no harm. */
export function dropDraft(draft        )       {
  for (const suffix of ['', '-wal', '-shm', '-journal']) {
    try {
      rmSync(`${draft}${suffix}`, { force: true });
    } catch {
      // The file is complete under its final name, or the act has failed with an error of its own.
    }
  }
}
