import { TapeError } from '../errors.ts';
import type { OnProgress, Progress } from '../progress.ts';
import { dropDraft, keepDraft, newDraft } from '../sqlite/draft-file.ts';
import { cannotOpen, machineProbe, whyNotInPlace } from '../sqlite/place.ts';
import { privateCopy } from '../sqlite/private-copy.ts';
import { SqliteDb } from '../sqlite/sqlite.ts';

/** Options of a backup. */
export interface BackupOptions {
  /** Called some times, while pages are copied and then while the entries of the copy are verified. */
  readonly onProgress?: (progress: BackupProgress) => void;
}

/** How far a backup is in one of its parts. */
export type BackupProgress = Progress & { readonly of: 'pages' | 'entries' };

/**
 * Copies a database in use to a new file, verifies the copy, and only then gives it its name: a complete
 * backup exists or none. The file has mode 0600 from the start. Never replaces an existing file.
 * @throws TAPE_EXISTS; TAPE_CORRUPT when the copy does not verify; TAPE_CANNOT_OPEN
 */
export async function backupTo(
  db: SqliteDb,
  file: string,
  check: (copy: string) => Iterable<{ readonly message: string }>,
  onPages?: OnProgress,
): Promise<void> {
  let draft: string | undefined;
  try {
    draft = newDraft(file);
    await db.backup(draft, onPages);
    for (const problem of check(draft))
      throw new TapeError(
        'TAPE_CORRUPT',
        `cannot back up to '${file}': the copy does not verify: ${problem.message}`,
      );
    keepDraft(draft, file);
  } catch (error) {
    if (error instanceof TapeError) throw error;
    throw cannotOpen(file, (error as Error).message, error);
  } finally {
    if (draft !== undefined) dropDraft(draft);
  }
}

/**
 * Copies a database of an older schema as it is, whole or not at all. Its hashes are not verified: the first opening
 * for writing upgrades it.
 * @throws TAPE_EXISTS, TAPE_CANNOT_OPEN
 */
export async function copyOlder(from: string, file: string): Promise<void> {
  const copy = whyNotInPlace(from, machineProbe) === undefined ? undefined : privateCopy(from);
  try {
    const db = new SqliteDb(copy?.path ?? from, { readonly: true });
    try {
      await backupTo(db, file, () => []);
    } finally {
      db.close();
    }
  } finally {
    copy?.remove();
  }
}
