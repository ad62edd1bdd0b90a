import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { isObject, type JsonObject } from '../entry/json.ts';
import { parsed } from '../entry/parsed.ts';

/** How far a home has come: the numbers of its last entry, and of the last line of its lineage. */
export interface HomeHead {
  readonly entry: number;
  readonly line: number;
}

/** What was written to a home behind a place of it. */
export interface Written {
  /** How far the home has come now. */
  readonly head: HomeHead;
  /** The ULIDs of the sessions that have new entries, and of those with new lines about them. */
  readonly entries: readonly string[];
  readonly lines: readonly string[];
  /** More was written than was looked at: the lists are empty. */
  readonly isMore: boolean;
}

/** How many entries and lines are looked at. */
const lookedMax = 20_000;

export function homeHead(db: Db): HomeHead {
  const row = db.get<HomeHead>(
    'SELECT coalesce((SELECT max(id) FROM entry), 0) AS entry, coalesce((SELECT max(g) FROM lineage), 0) AS line',
  );
  return row ?? { entry: 0, line: 0 };
}

/** Finds the sessions that were written to behind a place, but for those of unfinished imports. */
export function writtenBehind(db: Db, after: HomeHead): Written {
  return db.read(() => {
    const head = homeHead(db);
    if (head.entry - after.entry > lookedMax || head.line - after.line > lookedMax)
      return { head, entries: [], lines: [], isMore: true };
    const ids = (table: string, key: string, from: number) =>
      db
        .all<{ ulid: string }>(
          `SELECT ulid FROM tape WHERE id IN (SELECT tape_id FROM ${table} WHERE ${key} > @from) AND lifecycle <> 'staging'`,
          { from },
        )
        .map(({ ulid }) => ulid);
    return {
      head,
      entries: ids('entry', 'id', after.entry),
      lines: ids('lineage', 'g', after.line),
      isMore: false,
    };
  });
}

/** A session that others can see, with its first new entry; of one that has appeared, with its first own one. */
export interface WrittenSession {
  readonly id: string;
  readonly from: Seq;
}

/** What became of a home behind a place of it. What an unfinished import wrote or lost counts for nothing. */
export interface Changes {
  /** How far the home has come now. */
  readonly head: HomeHead;
  /** Whether content was erased, or an event has the name. */
  readonly isErased: boolean;
  /** Whether an event has the name. */
  readonly isNamed: boolean;
  /** The sessions that have appeared, or have new entries. */
  readonly sessions: readonly WrittenSession[];
}

/** Finds what became of a home behind a place of it. The cost grows with what was written since. */
export function changesBehind(db: Db, { after, event }: { after: HomeHead; event: string }): Changes {
  const found = db.all<{
    id: string;
    entry: number;
    line: number;
    erased: number;
    from: Seq | null;
    hidden: number;
  }>(
    `SELECT t.ulid AS id, max(w.entry) AS entry, max(w.line) AS line, max(w.erased) AS erased, min(w.seq) AS "from",
         max(CASE WHEN t.lifecycle = 'staging' THEN 1 ELSE 0 END) AS hidden
       FROM (
         SELECT tape_id, id AS entry, 0 AS line, CASE WHEN mark = 'redaction' THEN NULL ELSE seq END AS seq,
             CASE WHEN name = @event THEN 2 WHEN mark = 'redaction' THEN 1 ELSE 0 END AS erased
           FROM entry WHERE id > @entry
         UNION ALL
         SELECT tape_id, 0, g, CASE WHEN type = 'session' THEN 1 ELSE NULL END, 0 FROM lineage WHERE g > @line
       ) w JOIN tape t ON t.id = w.tape_id GROUP BY t.ulid`,
    { ...after, event },
  );
  const seen = found.filter(({ hidden }) => hidden === 0);
  const erased = seen.reduce((most, one) => Math.max(most, one.erased), 0);
  return {
    head: {
      entry: found.reduce((last, { entry }) => Math.max(last, entry), after.entry),
      line: found.reduce((last, { line }) => Math.max(last, line), after.line),
    },
    ...{ isErased: erased > 0, isNamed: erased === 2 },
    sessions: seen.flatMap(({ id, from }) => (from === null ? [] : [{ id, from }])),
  };
}

/** An entry of which the content was erased: the session that owns it, its key, and what was left of it. */
export interface ErasedEntry {
  readonly session: string;
  readonly key: string | undefined;
  readonly was: JsonObject;
}

/** Finds the entries whose content was erased behind a place, up to another one; undefined where they are too many to look at. */
export function erasedBetween(
  db: Db,
  { after, to }: { after: number; to: number },
): readonly ErasedEntry[] | undefined {
  const found = db.all<{ session: string; key: string | null; payload: string | null }>(
    `SELECT t.ulid AS session, o.key, e.payload
       FROM entry e JOIN tape t ON t.id = e.tape_id LEFT JOIN entry o ON o.tape_id = e.tape_id AND o.seq = e.ref
       WHERE e.id > @after AND e.id <= @to AND e.mark = 'redaction' AND t.lifecycle <> 'staging' ORDER BY e.id LIMIT @most`,
    { after, to, most: lookedMax + 1 },
  );
  if (found.length > lookedMax) return undefined;
  return found.map(({ session, key, payload }) => {
    const { was } = parsed(payload ?? '{}');
    return { session, key: key ?? undefined, was: isObject(was) ? was : {} };
  });
}
