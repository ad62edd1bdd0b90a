import { isTextRef, loadBlob, restoreBlobs } from '../entry/blob.ts';
import type { EntryKind, Seq } from '../entry/entry.ts';
import { isObject, type Json } from '../entry/json.ts';
import { tapeName } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { pause } from '../sqlite/lock-wait.ts';
import type { Db, SqlValue } from '../sqlite/sqlite.ts';
import { getTape } from '../tape/find.ts';
import { segments } from '../tape/interval.ts';
import { type Ref, type TapeRow, tapeById } from '../tape/tape.ts';

/** What to look for. */
export interface SearchQuery {
  /** Taken literally: no character has a meaning of its own. */
  readonly text: string;
  /** Only what this session sees. */
  readonly session?: Ref;
  readonly kind?: EntryKind;
  /** At most so many hits (default 20). */
  readonly limit?: number;
}

/** An entry that holds the text. An inherited entry is one hit, with all the sessions that see it. */
export interface Hit {
  /** The session that wrote it. */
  readonly session: string;
  readonly tape: string;
  readonly seq: Seq;
  readonly kind: EntryKind;
  readonly name?: string;
  readonly at: number;
  /** The text around the first place where it was found, on one line. */
  readonly snippet: string;
  /** Names of the sessions that see the entry, at most a hundred, its own first. */
  readonly sessions: readonly string[];
}

interface SearchRow {
  readonly id: number;
  readonly tape_id: number;
  readonly seq: Seq;
  readonly kind: EntryKind;
  readonly name: string | null;
  readonly at: number;
  readonly payload: string | null;
}

const limitDefault = 20;
const sessionsMax = 100;
const pageRows = 200;
const chunkRows = 500;

/**
 * Finds entries that hold every word of a text and the text itself, newest first (D607). What the index does not
 * hold yet goes through a temporary one, so an index that lags or was dropped costs time and changes no hit.
 */
export function searchEntries(db: Db, realm: string, query: SearchQuery): Hit[] {
  const text = query.text.trim();
  if (text === '' || query.limit === 0) return [];
  const among = query.session === undefined ? undefined : getTape(db, realm, query.session);
  const limit = query.limit ?? limitDefault;
  const literal = new RegExp(RegExp.escape(text), 'iu');
  const hits: Hit[] = [];
  for (const row of candidates(db, text)) {
    if (query.kind !== undefined && row.kind !== query.kind) continue;
    if (among !== undefined && !sees(db, among, row)) continue;
    const said = row.payload === null ? '' : searchText(db, row.name, JSON.parse(row.payload) as Json);
    const found = literal.exec(said);
    if (found === null) continue;
    const owner = tapeById(db, row.tape_id);
    if (owner.lifecycle === 'staging') continue;
    hits.push(
      toHit(db, owner, { row, snippet: snippetOf(said, { at: found.index, length: found[0].length }) }),
    );
    if (hits.length >= limit) break;
  }
  return hits;
}

/** Rows that may be hits, newest first: what is not indexed, then the index. */
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

/** Rows by id, newest first, a page at a time. */
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
 * Whether the tokenizer of the index sees a word in a text at all, which then finds itself. It knows the Unicode of its
 * own time: what has become a letter since is nothing to it.
 */
function tokenized(db: Db, text: string, match: string): boolean {
  if (/[0-9A-Za-z]/.test(match)) return true;
  if (!makeFresh(db)) return false;
  db.run('DELETE FROM temp.fresh_fts');
  db.run('INSERT INTO temp.fresh_fts (rowid, text) VALUES (1, @text)', { text });
  return db.get('SELECT 1 FROM temp.fresh_fts WHERE fresh_fts MATCH @match', { match }) !== undefined;
}

/** False where not even a temporary table can be made, as on a full disk: then every row is looked at. */
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

/** The rows above the watermark that match, by a temporary table with the same tokenizer. */
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
 * Brings the index on by at most so many entries, in the caller's transaction; returns how many there were. It is
 * never done inside an append: indexing there costs four times the append.
 */
function indexChunk(db: Db): number {
  const page = db.all<SearchRow>(
    'SELECT id, tape_id, seq, kind, name, at, payload FROM entry WHERE id > @after ORDER BY id LIMIT @limit',
    { after: indexedTo(db), limit: chunkRows },
  );
  const last = page.at(-1);
  if (last === undefined) return 0;
  for (const row of page) addText(db, 'entry_fts', row);
  db.run(
    `INSERT INTO home (key, value) VALUES ('search', @value) ON CONFLICT DO UPDATE SET value = excluded.value`,
    { value: String(last.id) },
  );
  return page.length;
}

/** Brings the index up to date, in chunks; a store that cannot be written now is searched without. */
export function updateIndex(db: Db): void {
  try {
    // Between two chunks the others get their turn.
    while (db.tryWrite(() => indexChunk(db)) > 0) pause(2);
  } catch (error) {
    if (!(error instanceof TapeError) || (error.code !== 'TAPE_LOCKED' && error.code !== 'TAPE_IO'))
      throw error;
  }
}

/** Empties the index: the next search makes it anew. */
export function dropIndex(db: Db): void {
  db.exec('DROP TABLE IF EXISTS entry_fts');
  db.exec("CREATE VIRTUAL TABLE entry_fts USING fts5(text, content='', contentless_delete=1)");
  db.run(`DELETE FROM home WHERE key = 'search'`);
}

/** The last entry that the index holds. */
function indexedTo(db: Db): number {
  return Number(db.get<{ value: string }>(`SELECT value FROM home WHERE key = 'search'`)?.value ?? 0);
}

function addText(db: Db, table: 'entry_fts' | 'temp.fresh_fts', row: SearchRow): void {
  if (row.payload === null) return;
  const params: Record<string, SqlValue> = {
    id: row.id,
    text: searchText(db, row.name, JSON.parse(row.payload) as Json),
  };
  db.run(`INSERT INTO ${table} (rowid, text) VALUES (@id, @text)`, params);
}

/**
 * Every word in quotes, so that no character of it means anything; the tokenizer of the index takes it apart, as it
 * did with the entries. Undefined when there is no letter or digit: then only reading everything finds it.
 */
function matchOf(text: string): string | undefined {
  const words = text.slice(0, 200).split(/\s+/).slice(0, 32);
  // A word that the limit cuts in two is no word of the text; without it there are fewer, never other, hits to check.
  if (text.length > 200) words.pop();
  if (!words.some((word) => /[\p{L}\p{N}]/u.test(word))) return undefined;
  return words.map((word) => `"${word.replaceAll('"', '""').replaceAll('\0', ' ')}"`).join(' ');
}

/** What of an entry can be found: its name and every text in its payload, keys, files and images left out. */
function searchText(db: Db, name: string | null, payload: Json): string {
  const load = (hash: string) => loadBlob(db, hash);
  return [...(name === null ? [] : [name]), ...textsOf(payload, { load, depth: 0 })].join('\n');
}

interface Within {
  readonly load: (hash: string) => Uint8Array;
  readonly depth: number;
}

function textsOf(value: Json, { load, depth }: Within): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > 64) return [];
  const inside = { load, depth: depth + 1 };
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, inside));
  // A large output is found by all of it, not by its preview alone.
  if (isTextRef(value)) return textsOf(restoreBlobs(value, load) as Json, inside);
  if (isObject(value) && value.type === 'blob') return [];
  return Object.entries(value).flatMap(([key, field]) =>
    key === 'type' || key === 'role' || key === 'toolCallId' ? [] : textsOf(field as Json, inside),
  );
}

function snippetOf(said: string, { at, length }: { at: number; length: number }): string {
  const from = Math.max(0, at - 40);
  return said
    .slice(from, at + length + 80)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim();
}

function sees(db: Db, session: TapeRow, { tape_id, seq }: SearchRow): boolean {
  return segments(db, session, seq - 1, Math.min(seq, session.head_seq)).some(
    (segment) => segment.tapeId === tape_id && segment.lo < seq && seq <= segment.hi,
  );
}

function toHit(db: Db, owner: TapeRow, { row, snippet }: { row: SearchRow; snippet: string }): Hit {
  // The inner limit keeps a session of very many forks from being walked whole, the outer one a tree of them.
  const seenBy = db.all<{ name: string }>(
    `WITH RECURSIVE seen(id) AS (
       SELECT @tape UNION SELECT c.id FROM seen s JOIN tape c ON c.id IN (
         SELECT id FROM tape WHERE parent_id = s.id AND base_seq >= @seq AND floor_seq < @seq LIMIT ${sessionsMax}))
     SELECT name FROM (
       SELECT id, name FROM seen JOIN tape USING (id) WHERE lifecycle NOT IN ('staging', 'purged') LIMIT ${sessionsMax})
     ORDER BY id`,
    { tape: row.tape_id, seq: row.seq },
  );
  return {
    session: owner.name,
    tape: tapeName(owner.realm, owner.name, owner.incarnation),
    seq: row.seq,
    kind: row.kind,
    ...(row.name !== null && { name: row.name }),
    at: row.at,
    snippet,
    sessions: seenBy.map(({ name }) => name),
  };
}
