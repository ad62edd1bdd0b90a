import type { Db, Params } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { isUnfinished } from '../sqlite/schema.ts';
import { getTape } from './find.ts';
import { type InfoRow, type SessionInfo, selectInfo, toInfo, tokensOfTape } from './info.ts';
import { assertStatus, type Lifecycle, lifecycles, type Ref } from './tape.ts';
import { belowInTree, childrenInTree, leftInTree, parentInTree, placeInParent } from './tree.ts';

/** Selects sessions. */
export interface SessionQuery {
  readonly kind?: string;
  readonly lifecycle?: Lifecycle;
  /** Only the children of this session in the tree; with `key` or `unfinished`, those that were forked from it. */
  readonly parent?: Ref;
  /** Only sessions without a parent in the tree. */
  readonly roots?: boolean;
  /** Only sessions with a name or an alias that begins with this text. With `all` and `limit`, those of the first names. */
  readonly prefix?: string;
  /** Only sessions whose ULID begins with this text, in either case, but for deleted ones. With `limit`, those of the first ULIDs. */
  readonly idPrefix?: string;
  /**
   * With `parent`: only those that left it at this position or after it, by their links where these name a place, or else
   * by their forks, in the order of these positions. A page of them costs no more than its size allows, whatever their number.
   */
  readonly leftFrom?: Seq;
  /** Only sessions that were forked with this key; with `parent`, at most one. */
  readonly key?: string;
  /** Only the sessions below this one: its children, their children, and so on. */
  readonly under?: Ref;
  /** Only active children that have a delivery to make: how they report was requested, and has not been done. */
  readonly unfinished?: boolean;
  /**
   * Only sessions with something pending: a lease, an item in the inbox, an open run, an open tool call, or a running
   * task.
   */
  readonly pending?: boolean;
  /**
   * Only sessions whose last message, or whose creation without one, is at this time or later: milliseconds since the
   * epoch.
   */
  readonly since?: number;
  /** Include archived, destroyed and ephemeral sessions. */
  readonly all?: boolean;
  /** True: only deleted sessions, purged ones included; false: none of them. Default: as `all` says. */
  readonly deleted?: boolean;
  /** Include the sessions of other realms. Those below a session are always of its realm. */
  readonly allRealms?: boolean;
  /** List in order of creation, after this session; null starts with the first. */
  readonly after?: Ref | null;
  readonly limit?: number;
  /** Give sessions without a title one: the beginning of their first prompt, or of their task. */
  readonly titles?: boolean;
  /** Count what each session has. */
  readonly counts?: boolean;
}

/** Selects sessions that are read a few at a time, in any order. */
export interface ReadQuery extends SessionQuery {
  readonly order?: SessionOrder;
  /** How many of the first ones to leave out. */
  readonly offset?: number;
  /** Only the sessions of these ULIDs. */
  readonly ids?: readonly string[];
}

/** When something was last said in a session: so an import has its place by the times of its source. */
const spokenAt = 'coalesce(t.last_message_at, t.created_at)';

/** All sessions below one in the tree. */
const below = belowInTree('@under');

const unfinished = `SELECT id FROM tape WHERE parent_id > 0 AND ${isUnfinished}`;

/** The unfinished ones, found from below: there are few of them, however many sessions have ended. */
const unfinishedBelow = `WITH RECURSIVE up (id, above) AS (
    SELECT id, parent_id FROM tape WHERE parent_id > 0 AND ${isUnfinished}
    UNION ALL SELECT up.id, p.parent_id FROM up JOIN tape p ON p.id = up.above
      WHERE up.above <> @under AND p.parent_id < p.id
  ) SELECT id FROM up WHERE above = @under`;

/** How many forks have not ended. */
export interface Unfinished {
  /** Those of the session. */
  readonly children: number;
  /** Those at any depth below it, or below the other session. */
  readonly below: number;
}

/** Counts the unfinished forks of a session and those below `root`, and reads no more of them. */
export function countUnfinished(
  db: Db,
  { parent, root }: { readonly parent: number; readonly root: number },
): Unfinished {
  const sql = `SELECT count(*) AS below, count(CASE WHEN parent_id = @parent THEN 1 END) AS children
    FROM tape WHERE id IN (${unfinishedBelow})`;
  return db.get<Unfinished>(sql, { parent, under: root }) ?? { children: 0, below: 0 };
}

const pending = `SELECT tape_id FROM open_run UNION SELECT tape_id FROM stream_chunk UNION SELECT tape_id FROM lease
  UNION SELECT tape_id FROM inbox UNION SELECT tape_id FROM open_calls WHERE tape_id > 0 AND to_seq IS NULL
  UNION SELECT id FROM tape WHERE task = 'running'`;

/**
 * Those of names and aliases from one text on, and before another. Where all of them are wanted up to a limit, it ends the
 * search: thousands of names can begin alike.
 */
function prefixed({ all, limit, kind, since, lifecycle, roots, parent, under, after }: SessionQuery): string {
  const others = [kind, since, lifecycle, roots, parent, under, after];
  const isWhole = all === true && limit !== undefined && others.every((one) => one === undefined);
  const end = isWhole ? 'LIMIT @limit' : '';
  return `SELECT id FROM (SELECT id FROM tape
      WHERE realm = @realm AND name >= @prefix AND name < @prefixEnd AND lifecycle NOT IN ('staging', 'destroyed', 'purged')
      ORDER BY name ${end})
    UNION SELECT tape_id FROM (SELECT tape_id FROM alias
      WHERE realm = @realm AND alias >= @prefix AND alias < @prefixEnd ORDER BY alias ${end})`;
}

/** Those of a range of ids. The limit ends the search: the ids of a day begin alike. */
const withId = `SELECT id FROM tape WHERE ulid >= @idPrefix AND ulid < @idEnd AND lifecycle NOT IN ('staging', 'destroyed', 'purged')
  ORDER BY ulid LIMIT @limit`;

/** What selects the sessions of a query beside the columns of their rows. */
function selected(query: SessionQuery): string {
  const { prefix, idPrefix, ...others } = query;
  if (idPrefix !== undefined)
    return `AND t.id IN (${withId}) ${selected({ ...others, ...(prefix !== undefined && { prefix }) })}`;
  if (prefix !== undefined) return `AND t.id IN (${prefixed(query)}) ${selected(others)}`;
  if (query.pending === true) return `AND t.id IN (${pending}) ${selected({ ...query, pending: false })}`;
  if (query.under !== undefined)
    return `AND t.id IN (${query.unfinished === true ? unfinishedBelow : below})`;
  if (query.unfinished !== true) return '';
  return `AND t.id IN (${unfinished}${query.parent === undefined ? '' : ' AND parent_id = @parent'})`;
}

/**
 * Lists sessions, the one with the newest message first (of a session without one, its creation counts); with
 * `parent` or `after`, in order of creation; with `leftFrom`, in that of the positions where they left.
 * @throws TAPE_NO_SESSION, TAPE_BAD_STATUS
 */
export function listTapes(db: Db, realm: string, query: SessionQuery = {}): SessionInfo[] {
  const { where, order, params, isByPlace } = matching(db, realm, query);
  // Sorting all children, SQLite would first look up what the tables beside their rows have.
  const which = isByPlace
    ? `t.id IN (SELECT t.id FROM tape t WHERE ${where} ORDER BY ${order} LIMIT @limit)`
    : where;
  return db
    .all<InfoRow>(`${selectInfo(query)} WHERE ${which} ORDER BY ${order} LIMIT @limit`, params)
    .map(toInfo);
}

/** The conditions of a query, their parameters, and its order. */
function matching(
  db: Db,
  realm: string,
  query: ReadQuery,
): { readonly where: string; readonly order: string; readonly params: Params; readonly isByPlace: boolean } {
  if (query.lifecycle !== undefined) assertStatus('list sessions of lifecycle', query.lifecycle, lifecycles);
  const idOf = (ref: Ref | null | undefined) => (ref == null ? null : getTape(db, realm, ref).id);
  const parent = idOf(query.parent);
  const after = idOf(query.after);
  const under = idOf(query.under);
  // With a plus SQLite uses no index for a column: it looks up the selected ids instead.
  const isSelected =
    query.unfinished === true ||
    query.pending === true ||
    query.prefix !== undefined ||
    query.idPrefix !== undefined ||
    query.ids !== undefined;
  const t = isSelected ? '+t' : 't';
  // These are of forks: a link puts a session elsewhere in the tree, and nothing else.
  const isForked = query.key !== undefined || query.unfinished === true;
  const isByPlace = parent !== null && query.leftFrom !== undefined;
  const isOfRealm = query.allRealms !== true && parent === null && under === null;
  const where = `${isOfRealm ? `${t}.realm = @realm AND ` : ''}${lifecyclesOf(query)}
       AND (@all = 1 OR CAST(@lifecycle AS TEXT) IS NOT NULL OR (t.lifecycle NOT IN ('archived', 'destroyed') AND t.ephemeral = 0))
       ${query.since === undefined ? '' : `AND ${spokenAt} >= @since`}
       AND (CAST(@kind AS TEXT) IS NULL OR t.kind = @kind)
       AND (CAST(@lifecycle AS TEXT) IS NULL OR t.lifecycle = @lifecycle)
       ${query.roots === true ? `AND ${parentInTree(t)} IS NULL` : ''}
       ${parent === null ? '' : `AND ${isByPlace ? `${t}.id IN (${leftInTree('@parent', '@leftFrom')})` : isForked ? `${t}.parent_id = @parent AND @parent < t.id` : `${t}.id IN (${childrenInTree('@parent')})`}`} ${after === null ? '' : 'AND t.id > @after'}
       ${query.ids === undefined ? '' : 'AND t.ulid IN (SELECT value FROM json_each(@ids))'}
       ${query.key === undefined ? '' : 'AND t.spawn_key = @key'} ${selected(query)}`;
  const isByCreation = parent !== null || query.after !== undefined;
  const order = isByPlace
    ? `${placeInParent('t')}, t.id`
    : isByCreation
      ? 't.id'
      : `${spokenAt} DESC, t.updated_at DESC, t.id DESC`;
  const params = {
    ...((isOfRealm || query.prefix !== undefined) && { realm }),
    // No character of a name is greater than the last one of Unicode.
    ...(query.prefix !== undefined && { prefix: query.prefix, prefixEnd: `${query.prefix}\u{10ffff}` }),
    ...(query.idPrefix !== undefined && idRange(query.idPrefix)),
    all: query.all === true || query.deleted === true ? 1 : 0,
    kind: query.kind ?? null,
    lifecycle: query.lifecycle ?? null,
    limit: query.limit ?? -1,
    ...(parent !== null && { parent }),
    ...(query.leftFrom !== undefined && { leftFrom: query.leftFrom }),
    ...(after !== null && { after }),
    ...(query.key !== undefined && { key: query.key }),
    ...(under !== null && { under }),
    ...(query.since !== undefined && { since: query.since }),
    ...(query.ids !== undefined && { ids: JSON.stringify(query.ids) }),
  };
  return { where, order, params, isByPlace };
}

/** Which lifecycles a query lists at most. */
function lifecyclesOf({ deleted }: SessionQuery): string {
  if (deleted === true) return `t.lifecycle IN ('destroyed', 'purged')`;
  return `t.lifecycle NOT IN ('staging', 'purged'${deleted === false ? `, 'destroyed'` : ''})`;
}

/** The ids that begin with a text. No character of an id is greater than Z, which `[` follows. */
function idRange(text: string): { readonly idPrefix: string; readonly idEnd: string } {
  const idPrefix = text.toUpperCase();
  return { idPrefix, idEnd: `${idPrefix}[` };
}

/** An order of sessions: by the last message, the creation, the name, or the most messages or tokens. */
export type SessionOrder = 'last' | 'created' | 'name' | 'messages' | 'tokens';

/** The orders of sessions. Those that are equal are in the order of their last messages. */
const orders: Readonly<Record<SessionOrder, string>> = {
  last: '',
  created: 't.created_at DESC,',
  name: 't.name,',
  messages: 't.message_count DESC,',
  tokens: `${tokensOfTape} DESC,`,
};

/** The number of sessions that are read at a time. */
const pageSize = 200;

/**
 * Reads the sessions that `listTapes` lists, also in another order, with little memory: first which they are, then page by
 * page what they are at that time.
 */
export function* readTapes(
  db: Db,
  realm: string,
  { order: by = 'last', offset = 0, ...query }: ReadQuery,
): Generator<SessionInfo, void> {
  const { where, order, params } = matching(db, realm, query);
  const ids = Float64Array.from(
    db.all<{ id: number }>(
      `SELECT t.id FROM tape t WHERE ${where} ORDER BY ${orders[by]} ${order} LIMIT @limit OFFSET @offset`,
      { ...params, offset },
    ),
    ({ id }) => id,
  );
  const sql = `${selectInfo(query)}, json_each(@page) page WHERE t.id = CAST(page.value AS BIGINT) ORDER BY page.key`;
  for (let at = 0; at < ids.length; at += pageSize)
    for (const row of db.all<InfoRow>(sql, { page: JSON.stringify([...ids.subarray(at, at + pageSize)]) }))
      yield toInfo(row);
}

/** Counts the sessions that `listTapes` lists, without a limit. It reads their rows, and sorts none. */
export function countListed(
  db: Db,
  realm: string,
  query: Pick<SessionQuery, 'all' | 'deleted' | 'kind' | 'roots'>,
): number {
  const { where, params } = matching(db, realm, query);
  const { limit: _, ...others } = params;
  return db.get<{ n: number }>(`SELECT count(*) AS n FROM tape t WHERE ${where}`, others)?.n ?? 0;
}
