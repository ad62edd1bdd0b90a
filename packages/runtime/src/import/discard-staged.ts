import { type HomeStore, TapeError } from '@tapedeck/tape';

/**
 * Erases what was staged and is not published: nothing reads it. The file is not written anew, which would hold all others up:
 * its sessions have the same content. Where the home is busy or the disk full it stays, and a check says so: the import continues
 * all the same.
 */
export function discardStaged(store: HomeStore, find: () => readonly string[]): void {
  try {
    const ids = find();
    if (ids.length > 0) store.imports.discard(ids, { wipe: false });
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
  }
}
