import type { Db } from '../db/db.ts';
import type { EntryKind, Seq } from '../entry/entry.ts';
import type { JsonObject } from '../entry/json.ts';
import { tapeName } from '../entry/name.ts';
import { parsed } from '../entry/parsed.ts';
import { type Condition, isWhere } from '../entry/recorded.ts';
import { wordsOf } from '../entry/search-text.ts';
import { TapeError } from '../errors.ts';
import { getTape } from '../tape/find.ts';
import { segments } from '../tape/interval.ts';
import { linkedTo } from '../tape/link.ts';
import { type Ref, refIn, type TapeRow, tapeById } from '../tape/tape.ts';
import { literal, snippetOf } from './literal.ts';
import {
  addText,
  type Budget,
  chunkOf,
  type IdRange,
  indexedTo,
  isSpent,
  newestId,
  type SearchRow,
  searchBudget,
  spend,
  textOf,
  unindexed,
} from './text-index.ts';

/** What to look for. */
export interface SearchQuery {
  /** Literal text, without query syntax. */
  readonly text: string;
  /** Only entries of this session, inherited ones included, and of the sessions that are linked to it. */
  readonly session?: Ref;
  readonly kind?: EntryKind;
  /** Only entries that record all of this of where they were said, and by what. */
  readonly where?: readonly Condition[];
  /** The most hits to return (default 20). */
  readonly limit?: number;
  /**
   * Whether to search every entry, however long it takes. By default a search indexes at most about 20,000 entries, or
   * 16 million characters, and scans as many that are not indexed yet, the newest.
   */
  readonly all?: boolean;
  /** Whether to find what only deleted sessions have, too. By default it is found where `session` names one of them. */
  readonly deleted?: boolean;
}

/** What a search found, and what it did not look at. */
export interface SearchResult {
  readonly hits: readonly Hit[];
  /**
   * How many entries were not searched that may contain newer hits, or more of them; 0 when the answer is whole. At most
   * that many: positions that were never written count too.
   */
  readonly unsearched: number;
  /** How many entries are not in the index yet. Each search indexes more of them, and so does each end of a run. */
  readonly unindexed: number;
}

/** An entry that contains the text. An inherited entry is one hit, with all the sessions that inherit it. */
export interface Hit {
  /** The name of the session that wrote it, or its id when it is deleted, or of another realm than that of the store. */
  readonly session: string;
  readonly tape: string;
  readonly seq: Seq;
  readonly kind: EntryKind;
  readonly name?: string;
  readonly at: number;
  /** The text around the first match, on one line. */
  readonly snippet: string;
  /** The sessions that read the entry and are not deleted, as `session` refers to them, at most a hundred, the writing one first. */
  readonly sessions: readonly string[];
}

/** The most hits where a query has no limit. */
export const searchLimit = 20;
const sessionsMax = 100;
const pageRows = 200;

/**
 * Finds entries that contain a text literally, ignoring case, newest first. Entries that are not indexed yet
 * are matched through a temporary index, so a lagging or dropped index costs time but changes no hit. Of many that are
 * not indexed, only the newest are scanned.
 */
export function searchEntries(db: Db, realm: string, query: SearchQuery): SearchResult {
  const { limit = searchLimit } = query;
  const hits: Hit[] = [];
  let unsearched = 0;
  if (db.words !== undefined) {
    for (let from: SearchPlace | undefined; ; ) {
      const page = searchPage(db, realm, query, { from, limit: limit - hits.length });
      hits.push(...page.hits);
      unsearched = page.unsearched;
      from = page.next;
      if (from === undefined) return { hits, unsearched, unindexed: 0 };
    }
  }
  const text = query.text.trim();
  if (text === '' || limit === 0) return { hits: [], unsearched: 0, unindexed: unindexed(db) };
  const hitOf = matcher(db, realm, query);
  const scan: Scan = {
    budget: searchBudget(query),
    skipped: (count) => {
      unsearched = count;
    },
  };
  for (const row of candidates(db, text, scan)) {
    const hit = hitOf(row);
    if (hit !== undefined) hits.push(hit);
    if (hits.length >= limit) break;
  }
  return { hits, unsearched, unindexed: unindexed(db) };
}

/** Where a search goes on: with the entries of lower ids, and what is left to scan. */
export interface SearchPlace {
  readonly before: number;
  readonly budget: Budget;
}

/** What a search found among some entries. */
export interface SearchPage extends Pick<SearchResult, 'hits' | 'unsearched'> {
  /** Undefined when nothing is left, or the limit is reached. */
  readonly next?: SearchPlace;
}

/** The most words of a text that a query of an index has: servers bound the depth of a query. */
const wantedMax = 32;

/**
 * Searches the next entries of a database that keeps the words of each: a page of those that have the words of the text
 * or, for a text without any, a chunk of all, while the budget lasts.
 */
export function searchPage(
  db: Db,
  realm: string,
  query: SearchQuery,
  { from, limit }: { readonly from: SearchPlace | undefined; readonly limit: number },
): SearchPage {
  const text = query.text.trim();
  if (text === '' || limit === 0) return { hits: [], unsearched: 0 };
  const { before, budget } = from ?? { before: Number.MAX_SAFE_INTEGER, budget: searchBudget(query) };
  // They find what may match; the whole text decides.
  const wanted = wordsOf(text).slice(0, wantedMax);
  const hi = wanted.length === 0 ? Math.min(newestId(db), before - 1) : 0;
  if (hi > 0 && isSpent(budget)) return { hits: [], unsearched: hi };
  const rows =
    wanted.length === 0
      ? chunkOf(db, { lo: 0, hi }, 'newest')
      : (db.words?.find(wanted, { before, limit: pageRows }) ?? []);
  const hitOf = matcher(db, realm, query);
  const hits: Hit[] = [];
  for (const row of rows as readonly SearchRow[]) {
    const hit = hitOf(row);
    if (hit !== undefined) hits.push(hit);
    if (hits.length >= limit) return { hits, unsearched: 0 };
  }
  const last = rows.at(-1);
  if (last === undefined || (wanted.length > 0 && rows.length < pageRows)) return { hits, unsearched: 0 };
  const left = wanted.length === 0 ? spend(budget, rows as readonly SearchRow[]) : budget;
  return { hits, unsearched: 0, next: { before: last.id, budget: left } };
}

/** Makes the hit of a row that a search finds; undefined for one that it does not. */
function matcher(db: Db, realm: string, query: SearchQuery): (row: SearchRow) => Hit | undefined {
  const session = query.session === undefined ? undefined : getTape(db, realm, query.session);
  // What a session stands for is searched with it.
  const searched = session === undefined ? undefined : [session, ...linkedTo(db, session)];
  const find = literal(query.text.trim());
  return (row) => {
    if (query.kind !== undefined && row.kind !== query.kind) return undefined;
    if (searched !== undefined && !searched.some((one) => sees(db, one, row))) return undefined;
    if (query.where !== undefined && !isWhere({ meta: metaOf(db, row) }, query.where)) return undefined;
    const content = textOf(db, row);
    const found = find(content);
    if (found === undefined) return undefined;
    const owner = tapeById(db, row.tape_id);
    if (owner.lifecycle === 'staging') return undefined;
    const hit = toHit(db, owner, { realm, row, snippet: snippetOf(content, found) });
    // Deleted sessions are searched where one of them is named.
    return hit.sessions.length > 0 || session !== undefined || query.deleted === true ? hit : undefined;
  };
}

/** What a search may read without the index. */
interface Scan {
  readonly budget: Budget;
  /** Receives how many entries the search passes over, before it goes on with older ones. */
  skipped(entries: number): void;
}

/** Yields rows that may match, newest first: unindexed entries, then the index. */
function* candidates(db: Db, text: string, { budget, skipped }: Scan): Generator<SearchRow> {
  const match = matchOf(text);
  const hi = newestId(db);
  if (match === undefined || !tokenized(db, text, match)) {
    skipped(yield* rows(db, { hi, lo: 0 }, budget));
    return;
  }
  const watermark = indexedTo(db);
  skipped(yield* fresh(db, { match, lo: watermark, hi }, budget));
  for (let before = watermark + 1; ; ) {
    const found = db.all<{ rowid: number }>(
      'SELECT rowid FROM entry_fts WHERE entry_fts MATCH @match AND rowid < @before ORDER BY rowid DESC LIMIT @limit',
      { match, before, limit: pageRows },
    );
    for (const { rowid } of found) yield* rows(db, { lo: rowid - 1, hi: rowid }, searchBudget({ all: true }));
    if (found.length < pageRows) return;
    before = found.at(-1)?.rowid ?? 0;
  }
}

/** Yields rows by id, newest first, chunk by chunk, while the budget lasts; returns how many ids are left. */
function* rows(db: Db, { lo, hi }: IdRange, budget: Budget): Generator<SearchRow, number> {
  let left = budget;
  for (let to = hi; to > lo; ) {
    if (isSpent(left)) return to - lo;
    const chunk = chunkOf(db, { lo, hi: to }, 'newest');
    yield* chunk;
    to = (chunk.at(-1)?.id ?? lo + 1) - 1;
    left = spend(left, chunk);
  }
  return 0;
}

/**
 * Returns whether the tokenizer of the index finds a word in the text; then the index can find the text. The
 * tokenizer has the Unicode version of its own release and ignores newer letters.
 */
function tokenized(db: Db, text: string, match: string): boolean {
  if (/[0-9A-Za-z]/.test(match)) return true;
  if (!makeFresh(db)) return false;
  db.run('DELETE FROM temp.fresh_fts');
  db.run('INSERT INTO temp.fresh_fts (rowid, text) VALUES (1, @text)', { text });
  return db.get('SELECT 1 FROM temp.fresh_fts WHERE fresh_fts MATCH @match', { match }) !== undefined;
}

/**
 * Returns false where not even a temporary table can be created, as on a full disk: every row is then
 * scanned.
 */
function makeFresh(db: Db): boolean {
  try {
    db.exec(
      "CREATE VIRTUAL TABLE IF NOT EXISTS temp.fresh_fts USING fts5(text, content='', contentless_delete=1)",
    );
    return true;
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_IO') return false;
    throw error;
  }
}

/**
 * Yields matching rows that are not indexed, newest first, through a temporary table with the same tokenizer, while the
 * budget lasts; returns how many ids are left.
 */
function* fresh(
  db: Db,
  { match, lo, hi: newest }: IdRange & { readonly match: string },
  budget: Budget,
): Generator<SearchRow, number> {
  if (newest <= lo) return 0;
  if (!makeFresh(db)) return yield* rows(db, { lo, hi: newest }, budget);
  let left = budget;
  for (let hi = newest; hi > lo; ) {
    if (isSpent(left)) return hi - lo;
    const chunk = chunkOf(db, { lo, hi }, 'newest');
    const byId = new Map(chunk.map((row) => [row.id, row]));
    db.run('DELETE FROM temp.fresh_fts');
    for (const row of chunk) addText(db, 'temp.fresh_fts', row);
    const found = db.all<{ rowid: number }>(
      'SELECT rowid FROM temp.fresh_fts WHERE fresh_fts MATCH @match ORDER BY rowid DESC',
      { match },
    );
    for (const { rowid } of found) {
      const row = byId.get(rowid);
      if (row !== undefined) yield row;
    }
    hi = (chunk.at(-1)?.id ?? lo + 1) - 1;
    left = spend(left, chunk);
  }
  return 0;
}

/**
 * Returns the query of the index: every word in quotes, so that no character is query syntax. Undefined when
 * the text has no letter or digit: only a full scan finds it.
 */
function matchOf(text: string): string | undefined {
  const words = text.slice(0, 200).split(/\s+/).slice(0, wantedMax);
  // The limit may cut the last word. Dropping it can only add candidates, and each candidate is checked.
  if (text.length > 200) words.pop();
  if (!words.some((word) => /[\p{L}\p{N}]/u.test(word))) return undefined;
  return words.map((word) => `"${word.replaceAll('"', '""').replaceAll('\0', ' ')}"`).join(' ');
}

function metaOf(db: Db, { id }: SearchRow): JsonObject {
  return parsed(
    db.get<{ meta: string | null }>('SELECT meta FROM entry WHERE id = @id', { id })?.meta ?? null,
  );
}

function sees(db: Db, session: TapeRow, { tape_id, seq }: SearchRow): boolean {
  return segments(db, session, seq - 1, Math.min(seq, session.head_seq)).some(
    (segment) => segment.tapeId === tape_id && segment.lo < seq && seq <= segment.hi,
  );
}

interface Found {
  readonly realm: string;
  readonly row: SearchRow;
  readonly snippet: string;
}

function toHit(db: Db, owner: TapeRow, { realm, row, snippet }: Found): Hit {
  // The inner limit bounds the children of one session, the outer one the whole tree.
  const seenBy = db.all<Pick<TapeRow, 'realm' | 'name' | 'ulid' | 'lifecycle'>>(
    `WITH RECURSIVE seen(id) AS (
       SELECT @tape UNION SELECT c.id FROM seen s JOIN tape c ON c.id IN (
         SELECT id FROM tape WHERE parent_id = s.id AND base_seq >= @seq AND floor_seq < @seq LIMIT ${sessionsMax}))
     SELECT realm, name, ulid, lifecycle FROM (
       SELECT id, realm, name, ulid, lifecycle FROM seen JOIN tape USING (id) WHERE lifecycle NOT IN ('staging', 'destroyed', 'purged') LIMIT ${sessionsMax})
     ORDER BY id`,
    { tape: row.tape_id, seq: row.seq },
  );
  return {
    session: refIn(realm, owner),
    tape: tapeName(owner.realm, owner.name, owner.incarnation),
    seq: row.seq,
    kind: row.kind,
    ...(row.name !== null && { name: row.name }),
    at: row.at,
    snippet,
    sessions: seenBy.map((tape) => refIn(realm, tape)),
  };
}
