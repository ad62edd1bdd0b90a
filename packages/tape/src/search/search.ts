import type { EntryKind, Seq } from '../entry/entry.ts';
import type { Json } from '../entry/json.ts';
import { tapeName } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { getTape } from '../tape/find.ts';
import { segments } from '../tape/interval.ts';
import { type Ref, refIn, type TapeRow, tapeById } from '../tape/tape.ts';
import { literal, snippetOf } from './literal.ts';
import { addText, chunkRows, indexedTo, type SearchRow, searchText } from './text-index.ts';

/** What to look for. */
export interface SearchQuery {
  /** Literal text, without query syntax. */
  readonly text: string;
  /** Only entries of this session, inherited ones included. */
  readonly session?: Ref;
  readonly kind?: EntryKind;
  /** The most hits to return (default 20). */
  readonly limit?: number;
}

/** An entry that contains the text. An inherited entry is one hit, with all the sessions that inherit it. */
export interface Hit {
  /** The name of the session that wrote it, or its id when it is of another realm than that of the store. */
  readonly session: string;
  readonly tape: string;
  readonly seq: Seq;
  readonly kind: EntryKind;
  readonly name?: string;
  readonly at: number;
  /** The text around the first match, on one line. */
  readonly snippet: string;
  /** The sessions that read the entry, as `session` refers to them, at most a hundred, the writing one first. */
  readonly sessions: readonly string[];
}

const limitDefault = 20;
const sessionsMax = 100;
const pageRows = 200;

/**
 * Finds entries that contain a text literally, ignoring case, newest first. Entries that are not indexed yet
 * are matched through a temporary index, so a lagging or dropped index costs time but changes no hit.
 */
export function searchEntries(db: Db, realm: string, query: SearchQuery): Hit[] {
  const text = query.text.trim();
  if (text === '' || query.limit === 0) return [];
  const session = query.session === undefined ? undefined : getTape(db, realm, query.session);
  const limit = query.limit ?? limitDefault;
  const find = literal(text);
  const hits: Hit[] = [];
  for (const row of candidates(db, text)) {
    if (query.kind !== undefined && row.kind !== query.kind) continue;
    if (session !== undefined && !sees(db, session, row)) continue;
    const content = row.payload === null ? '' : searchText(db, row.name, JSON.parse(row.payload) as Json);
    const found = find(content);
    if (found === undefined) continue;
    const owner = tapeById(db, row.tape_id);
    if (owner.lifecycle === 'staging') continue;
    hits.push(toHit(db, owner, { realm, row, snippet: snippetOf(content, found) }));
    if (hits.length >= limit) break;
  }
  return hits;
}

/** Yields rows that may match, newest first: unindexed entries, then the index. */
function* candidates(db: Db, text: string): Generator<SearchRow> {
  const match = matchOf(text);
  const watermark = indexedTo(db);
  if (match === undefined || !tokenized(db, text, match)) {
    yield* rows(db, { hi: Number.MAX_SAFE_INTEGER, lo: 0 });
    return;
  }
  yield* fresh(db, { match, watermark });
  for (let before = watermark + 1; ; ) {
    const found = db.all<{ rowid: number }>(
      'SELECT rowid FROM entry_fts WHERE entry_fts MATCH @match AND rowid < @before ORDER BY rowid DESC LIMIT @limit',
      { match, before, limit: pageRows },
    );
    for (const { rowid } of found) yield* rows(db, { lo: rowid - 1, hi: rowid });
    if (found.length < pageRows) return;
    before = found.at(-1)?.rowid ?? 0;
  }
}

/** Yields rows by id, newest first, page by page. */
function* rows(db: Db, { lo, hi }: { lo: number; hi: number }): Generator<SearchRow> {
  for (let to = hi; to > lo; ) {
    const page = db.all<SearchRow>(
      'SELECT id, tape_id, seq, kind, name, at, payload FROM entry WHERE id > @lo AND id <= @to ORDER BY id DESC LIMIT @limit',
      { lo, to, limit: pageRows },
    );
    yield* page;
    if (page.length < pageRows) return;
    to = (page.at(-1)?.id ?? lo + 1) - 1;
  }
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

/** Yields matching rows above the watermark, through a temporary table with the same tokenizer. */
function* fresh(db: Db, { match, watermark }: { match: string; watermark: number }): Generator<SearchRow> {
  const newest = db.get<{ id: number | null }>('SELECT max(id) AS id FROM entry')?.id ?? 0;
  if (newest <= watermark) return;
  if (!makeFresh(db)) {
    yield* rows(db, { lo: watermark, hi: newest });
    return;
  }
  for (let hi = newest; hi > watermark; hi -= chunkRows) {
    const page = new Map(
      [...rows(db, { lo: Math.max(watermark, hi - chunkRows), hi })].map((row) => [row.id, row]),
    );
    db.run('DELETE FROM temp.fresh_fts');
    for (const row of page.values()) addText(db, 'temp.fresh_fts', row);
    const found = db.all<{ rowid: number }>(
      'SELECT rowid FROM temp.fresh_fts WHERE fresh_fts MATCH @match ORDER BY rowid DESC',
      { match },
    );
    for (const { rowid } of found) {
      const row = page.get(rowid);
      if (row !== undefined) yield row;
    }
  }
}

/**
 * Returns the query of the index: every word in quotes, so that no character is query syntax. Undefined when
 * the text has no letter or digit: only a full scan finds it.
 */
function matchOf(text: string): string | undefined {
  const words = text.slice(0, 200).split(/\s+/).slice(0, 32);
  // The limit may cut the last word. Dropping it can only add candidates, and each candidate is checked.
  if (text.length > 200) words.pop();
  if (!words.some((word) => /[\p{L}\p{N}]/u.test(word))) return undefined;
  return words.map((word) => `"${word.replaceAll('"', '""').replaceAll('\0', ' ')}"`).join(' ');
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
  const seenBy = db.all<Pick<TapeRow, 'realm' | 'name' | 'ulid'>>(
    `WITH RECURSIVE seen(id) AS (
       SELECT @tape UNION SELECT c.id FROM seen s JOIN tape c ON c.id IN (
         SELECT id FROM tape WHERE parent_id = s.id AND base_seq >= @seq AND floor_seq < @seq LIMIT ${sessionsMax}))
     SELECT realm, name, ulid FROM (
       SELECT id, realm, name, ulid FROM seen JOIN tape USING (id) WHERE lifecycle NOT IN ('staging', 'purged') LIMIT ${sessionsMax})
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
