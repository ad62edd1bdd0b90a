import type { Db } from '../db/db.ts';
import { parsed } from '../entry/parsed.ts';
import { goneFileIn, sourceGoneEvent } from '../entry/source-gone.ts';
import { lastEvent } from '../tape/info.ts';
import { realmsOf } from '../tape/realms.ts';
import type { TapeRow } from '../tape/tape.ts';
import { belowInTree, childrenInTree, parentInTree } from '../tape/tree.ts';
import { isUndoneLine } from '../tape/undone.ts';
import type { LineageLine } from './line.ts';
import { parseLine } from './read.ts';

/** A line of the lineage, with what the database knows of it and the line itself does not say. */
export interface FamilyLine extends LineageLine {
  /** It is of a merge that is undone: a rewind of the session that received it hides it. */
  readonly undone?: true;
  /** The file that the session was imported from, where that is gone. */
  readonly sourceGone?: string;
}

/** Selects the newest sessions. */
export interface NewestQuery {
  /** How many, without their ancestors. */
  readonly limit?: number | undefined;
  /** Only sessions whose last message, or whose creation without one, is at this time or later. */
  readonly since?: number | undefined;
}

const spokenAt = 'coalesce(last_message_at, created_at)';

/** How many ancestors the newest sessions bring: a line of forks of forks has any number. */
const ancestorsMax = 100;

/**
 * Reads the newest sessions of all realms that are not deleted, with their ancestors. Seeks them by an index, however many sessions there
 * are.
 */
export function newestFamilies(db: Db, { limit = -1, since }: NewestQuery): FamilyLine[] {
  const found = realmsOf(db)
    .flatMap((realm) =>
      db.all<{ id: number; at: number }>(
        `SELECT id, ${spokenAt} AS at FROM tape WHERE realm = @realm AND lifecycle NOT IN ('staging', 'destroyed', 'purged')
           ${since === undefined ? '' : `AND ${spokenAt} >= @since`} ORDER BY ${spokenAt} DESC, id DESC LIMIT @limit`,
        { realm, limit, ...(since !== undefined && { since }) },
      ),
    )
    .sort((a, b) => b.at - a.at || b.id - a.id)
    .slice(0, limit < 0 ? undefined : limit);
  const ids = found.map(({ id }) => id);
  return linesOf(db, [...ids, ...above(db, ids, ancestorsMax)]);
}

/** Reads a session with all its ancestors and descendants. */
export function familyOf(db: Db, { id }: Pick<TapeRow, 'id'>): FamilyLine[] {
  const below = db.all<{ id: number }>(belowInTree('@id'), { id });
  return linesOf(db, [id, ...above(db, [id]), ...below.map((row) => row.id)]);
}

/** The ids of ancestors. Each level is one query, so that those of many sessions are found once. */
function above(db: Db, ids: readonly number[], levels = Number.POSITIVE_INFINITY): readonly number[] {
  const known = new Set(ids);
  const found: number[] = [];
  let level = ids;
  for (let n = 0; n < levels && level.length > 0; n += 1) {
    const parents = db.all<{ id: number }>(
      `SELECT DISTINCT ${parentInTree('t')} AS id FROM json_each(@ids) JOIN tape t ON t.id = CAST(value AS BIGINT)
         WHERE ${parentInTree('t')} IS NOT NULL`,
      { ids: JSON.stringify(level) },
    );
    level = parents.map(({ id }) => id).filter((id) => !known.has(id));
    for (const id of level) known.add(id);
    found.push(...level);
  }
  return found;
}

/** A line as a query returns it. */
interface LineRow {
  readonly g: number;
  readonly line: string;
  readonly undone: number;
  /** The payload of the last event that says whether the source of the session is there. */
  readonly gone: string | null;
}

const lineColumns = `g, line, ${isUndoneLine} AS undone, ${lastEvent(sourceGoneEvent, 'l.tape_id')} AS gone`;

function familyLine({ g, line, undone, gone }: LineRow): FamilyLine {
  const sourceGone = goneFileIn(parsed(gone));
  return {
    ...parseLine(g, line),
    ...(undone === 1 && { undone: true }),
    ...(sourceGone !== undefined && { sourceGone }),
  };
}

function linesOf(db: Db, ids: readonly number[]): FamilyLine[] {
  return db
    .all<LineRow>(
      `SELECT ${lineColumns} FROM json_each(@ids) JOIN lineage l ON tape_id = CAST(value AS BIGINT) ORDER BY g`,
      {
        ids: JSON.stringify(ids),
      },
    )
    .map(familyLine);
}

/** How many sessions are read at a time. */
const pageSessions = 200;

/** Reads the lines about all sessions, page by page: those of each session together, the sessions by their creation. */
export function* pagesOfLines(db: Db): Generator<readonly FamilyLine[], void> {
  for (let after = -Infinity; ; ) {
    const { last } = db.get<{ last: number | null }>(
      'SELECT max(id) AS last FROM (SELECT id FROM tape WHERE id > @after ORDER BY id LIMIT @limit)',
      { after, limit: pageSessions },
    ) ?? { last: null };
    if (last === null) return;
    const rows = db.all<LineRow>(
      `SELECT ${lineColumns} FROM lineage l WHERE tape_id > @after AND tape_id <= @last ORDER BY g`,
      { after, last },
    );
    yield rows.map(familyLine);
    after = last;
  }
}

/** The names that several sessions have that are not deleted: of other realms, or one after the other. */
export function sharedNames(db: Db): ReadonlySet<string> {
  const rows = db.all<{ name: string }>(
    `SELECT name FROM tape WHERE lifecycle NOT IN ('staging', 'destroyed', 'purged') GROUP BY name HAVING count(*) > 1`,
  );
  return new Set(rows.map(({ name }) => name));
}

/** The ULIDs of all sessions without a parent in the tree; the tree in which something was said last comes first. */
export function newestRoots(db: Db): readonly string[] {
  return db
    .all<{ ulid: string }>(
      `WITH RECURSIVE tree (root, id, at) AS (
         SELECT id, id, ${spokenAt} FROM tape t WHERE ${parentInTree('t')} IS NULL AND lifecycle <> 'staging'
         UNION SELECT tree.root, c.id, coalesce(c.last_message_at, c.created_at)
           FROM tree CROSS JOIN tape c ON c.id IN (${childrenInTree('tree.id')}))
       SELECT t.ulid FROM tree JOIN tape t ON t.id = tree.root GROUP BY tree.root, t.ulid ORDER BY max(tree.at) DESC, tree.root DESC`,
    )
    .map(({ ulid }) => ulid);
}

/** When something was last said in sessions, by ULID: in those given, or in all. */
export function spokenTimes(db: Db, ulids: readonly string[] | undefined): Map<string, number> {
  const rows = db.all<{ ulid: string; at: number }>(
    `SELECT ulid, ${spokenAt} AS at FROM ${ulids === undefined ? 'tape' : 'json_each(@ulids) JOIN tape ON ulid = value'}`,
    ulids === undefined ? {} : { ulids: JSON.stringify(ulids) },
  );
  return new Map(rows.map(({ ulid, at }) => [ulid, at]));
}

/** Counts the sessions of all realms, or the children of one session; with `deleted`, deleted ones, too. */
export function countSessions(
  db: Db,
  { parent, deleted }: { readonly parent: string | undefined; readonly deleted: boolean },
): number {
  const where = [
    ...(parent === undefined
      ? []
      : [`id IN (${childrenInTree('(SELECT id FROM tape WHERE ulid = @parent)')})`]),
    ...(deleted ? [] : [`lifecycle NOT IN ('destroyed', 'purged')`]),
  ];
  const row = db.get<{ n: number }>(
    `SELECT count(*) AS n FROM tape ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`}`,
    parent === undefined ? {} : { parent },
  );
  return row?.n ?? 0;
}
