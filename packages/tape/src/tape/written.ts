import type { Db } from '../db/db.ts';
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

/** How far a home has come, and whether something was erased in it behind a place. */
export interface ErasedBehind {
  /** The number of the last entry. */
  readonly entry: number;
  readonly isErased: boolean;
  /** Whether an event has the name. */
  readonly isNamed: boolean;
}

/**
 * Finds whether an entry behind a place says that content was erased, or is an event with a name. The cost grows with what was
 * written since. What an unfinished import lost counts for nothing.
 */
export function erasedBehind(db: Db, { entry, event }: { entry: number; event: string }): ErasedBehind {
  const found = db.get<{ entry: number | null; erased: number | null }>(
    `SELECT max(e.id) AS entry, max(CASE WHEN e.name = @event THEN 2 WHEN e.mark = 'redaction' THEN 1 ELSE 0 END
         * CASE WHEN t.lifecycle <> 'staging' THEN 1 ELSE 0 END) AS erased
       FROM entry e JOIN tape t ON t.id = e.tape_id WHERE e.id > @entry`,
    { entry, event },
  );
  const erased = found?.erased ?? 0;
  return { entry: found?.entry ?? entry, isErased: erased > 0, isNamed: erased === 2 };
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
