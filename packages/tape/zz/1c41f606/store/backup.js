import { TapeError } from '../errors.js';
import { dropDraft, keepDraft, newDraft } from '../sqlite/draft-file.js';
import { cannotOpen, machineProbe, whyNotInPlace } from '../sqlite/place.js';
import { privateCopy } from '../sqlite/private-copy.js';
import { Db } from '../sqlite/sqlite.js';

/**
 * Copies a database in use to a new file, verifies the copy, and only then gives it its name: a complete
 * backup exists or none. The file has mode 0600 from the start. Never replaces an existing file.
 * @throws TAPE_EXISTS; TAPE_CORRUPT when the copy does not verify; TAPE_CANNOT_OPEN
 */
export async function backupTo(
  db    ,
  file        ,
  check                                                          ,
)                {
  let draft                    ;
  try {
    draft = newDraft(file);
    await db.backup(draft);
    for (const problem of check(draft))
      throw new TapeError(
        'TAPE_CORRUPT',
        `cannot back up to '${file}': the copy does not verify: ${problem.message}`,
      );
    keepDraft(draft, file);
  } catch (error) {
    if (error instanceof TapeError) throw error;
    throw cannotOpen(file, (error         ).message, error);
  } finally {
    if (draft !== undefined) dropDraft(draft);
  }
}

/**
 * Copies a database of an older schema as it is, whole or not at all. Its hashes are not verified: the first opening
 * for writing upgrades it.
 * @throws TAPE_EXISTS, TAPE_CANNOT_OPEN
 */
export async function copyOlder(from        , file        )                {
  const copy = whyNotInPlace(from, machineProbe) === undefined ? undefined : privateCopy(from);
  try {
    const db = new Db(copy?.path ?? from, { readonly: true });
    try {
      await backupTo(db, file, () => []);
    } finally {
      db.close();
    }
  } finally {
    copy?.remove();
  }
}
