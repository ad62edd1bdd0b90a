/**
 * The tree of sessions: the parent of each is that of its last link, or else the session from which it was forked. What it
 * inherits always comes from the latter. These parts of SQL are the only place that knows it.
 */

/** The number of the last link of a tape; `id` is SQL for its row id. */
const lastLink = (id: string): string =>
  `(SELECT max(k.g) FROM lineage k WHERE k.tape_id = ${id} AND k.type = 'link')`;

/** The last link of a tape as its line; NULL without one. */
export function linkOf(id: string): string {
  return `(SELECT k.line FROM lineage k WHERE k.g = ${lastLink(id)})`;
}

/** The row id of the parent of a tape `t` in the tree; NULL for a root. */
export function parentInTree(t: string): string {
  return `(CASE WHEN ${lastLink(`${t}.id`)} IS NULL THEN ${t}.parent_id
    ELSE (SELECT k.peer_id FROM lineage k WHERE k.g = ${lastLink(`${t}.id`)}) END)`;
}

/** The position of its parent at which a tape `t` is shown: that of its last link, if it names one, or else of its fork. */
export function placeInParent(t: string): string {
  return `coalesce(${linkedPlace(`${t}.id`)}, ${t}.base_seq)`;
}

const linkedPlace = (id: string): string => `(SELECT k.seq FROM lineage k WHERE k.g = ${lastLink(id)})`;

/** Selects the row ids of the sessions that left one at a position or behind it, as their links or forks say. */
export function leftInTree(id: string, from: string): string {
  return `SELECT f.id FROM tape f WHERE f.parent_id = ${id} AND f.id > ${id} AND f.base_seq >= ${from}
      AND ${linkedPlace('f.id')} IS NULL
    UNION ALL SELECT l.tape_id FROM lineage l WHERE l.type = 'link' AND l.peer_id = ${id} AND l.seq >= ${from}
      AND l.g = ${lastLink('l.tape_id')}`;
}

/** Selects the row ids of the children of a session in the tree. */
export function childrenInTree(id: string): string {
  return `SELECT f.id FROM tape f WHERE f.parent_id = ${id} AND f.id > ${id} AND ${lastLink('f.id')} IS NULL
    UNION ALL SELECT l.tape_id FROM lineage l WHERE l.type = 'link' AND l.peer_id = ${id} AND l.g = ${lastLink('l.tape_id')}`;
}

/** Selects the row ids of all sessions below one in the tree. */
export function belowInTree(id: string): string {
  return `WITH RECURSIVE below (id) AS (
    ${childrenInTree(id)}
    UNION SELECT c.id FROM below JOIN tape c ON c.id IN (${childrenInTree('below.id')})
  ) SELECT id FROM below`;
}
