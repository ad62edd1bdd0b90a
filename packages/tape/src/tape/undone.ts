import type { Db } from '../db/db.ts';

/**
 * Merges that are undone: a rewind of the session that received one hides it. The row and the lines of a child record the
 * act; whether it still counts is read from the rewinds, here alone.
 */

/** The rewinds of a target after the merge `l`. */
const rewinds = `FROM entry r WHERE r.tape_id = l.peer_id AND r.mark = 'rewind' AND r.mark IN ('boundary','rewind','redaction')
  AND r.seq > l.seq`;

/**
 * Whether a row `l` of the lineage is a merge that a rewind hides. It goes back to the merge from rewind to rewind, each
 * of which says where what is visible before it ends, as `hiddenBy` does. Most merges have no rewind after them.
 */
export const isUndoneLine: string = `(l.type = 'merge' AND EXISTS (SELECT 1 ${rewinds}) AND EXISTS (
  WITH RECURSIVE visible (until) AS (
    SELECT 9007199254740991
    UNION ALL SELECT (
      SELECT min(coalesce(r.ref, 0), r.seq - 1) ${rewinds} AND r.seq <= visible.until ORDER BY r.seq DESC LIMIT 1)
      FROM visible WHERE visible.until >= l.seq)
  SELECT 1 FROM visible WHERE visible.until < l.seq))`;

/** Whether a session, whose row has this name, was merged, and each of its merges is undone. */
export function isUndone(t: string): string {
  const merges = `SELECT 1 FROM lineage l WHERE l.tape_id = ${t}.id AND l.type = 'merge'`;
  return `(${t}.delivery = 'merged' AND NOT EXISTS (${merges} AND NOT ${isUndoneLine}) AND EXISTS (${merges}))`;
}

/** Whether each merge of a session is undone. */
export function areMergesUndone(db: Db, id: number): boolean {
  return db.get(`SELECT 1 FROM tape t WHERE t.id = @id AND ${isUndone('t')}`, { id }) !== undefined;
}
