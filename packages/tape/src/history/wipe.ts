import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import { TapeError } from '../errors.ts';
import { mergeIndex } from '../search/text-index.ts';
import { pause } from '../sqlite/lock-wait.ts';
import type { Writer } from '../tape/append.ts';

/**
 * Bytes of content that was erased: they are in pages of the file, in its search index, and in its WAL, until all of it is
 * written anew. A mark says so from the commit of an erasure on, so that a process which dies between both leaves word of it.
 */

/**
 * Marks that the file may have bytes of what was erased, in the transaction of the erasure. No two marks are the same: who
 * wipes the file takes away that of what it wiped.
 */
export function markErased({ db, sources }: Writer): void {
  if (!db.hasFile) return;
  const [now, last] = [sources.now(), Date.parse(erasedAt(db) ?? '')];
  db.run(
    `INSERT INTO home (key, value) VALUES ('erased', @value) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
    { value: new Date(last >= now ? last + 1 : now).toISOString() },
  );
}

/** When content was erased that the file may still have; undefined for a file without any. */
export function erasedAt(db: Db): string | undefined {
  if (!db.hasFile) return undefined;
  return db.get<{ value: string }>(`SELECT value FROM home WHERE key = 'erased'`)?.value;
}

/**
 * Writes the search index and the file anew, and truncates the WAL. False, and the mark stays, when others used the file
 * throughout, or the disk is full.
 */
export function wipeFile(db: Db): boolean {
  const mark = erasedAt(db);
  if (!rewriteIndex(db) || !db.rewriteFile() || !emptyLog(db)) return false;
  if (mark !== undefined) takeMark(db, mark);
  return true;
}

/** Writes the search index anew. False when others write all the time, or the disk is full. */
function rewriteIndex(db: Db): boolean {
  try {
    mergeIndex(db);
  } catch (error) {
    if (!(error instanceof TapeError) || (error.code !== 'TAPE_IO' && error.code !== 'TAPE_LOCKED'))
      throw error;
    return false;
  }
  crashPoint('wipe/words');
  return true;
}

/** Takes the mark away, unless another process has erased something since. What is erased stays so where this fails. */
function takeMark(db: Db, mark: string): void {
  try {
    db.write(() => db.run(`DELETE FROM home WHERE key = 'erased' AND value = @mark`, { mark }));
    db.checkpoint();
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
  }
}

/** Truncates the WAL; retries until no reader blocks it or the lock wait is over. A disk that fails leaves it as it is. */
function emptyLog(db: Db): boolean {
  try {
    for (const deadline = performance.now() + db.lockWaitMs; ; pause(5)) {
      if (db.checkpoint()) return true;
      if (performance.now() > deadline) return false;
    }
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_IO') throw error;
    return false;
  }
}
