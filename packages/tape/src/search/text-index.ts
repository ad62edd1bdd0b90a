import type { Db, SqlValue } from '../db/db.ts';
import { loadBlob } from '../entry/blob.ts';
import type { EntryKind, Seq } from '../entry/entry.ts';
import type { Json } from '../entry/json.ts';
import { searchText } from '../entry/search-text.ts';
import { TapeError } from '../errors.ts';
import type { OnProgress } from '../progress.ts';
import { pause } from '../sqlite/lock-wait.ts';

/** A row of `entry`, as far as it is searched. */
export interface SearchRow {
  readonly id: number;
  readonly tape_id: number;
  readonly seq: Seq;
  readonly kind: EntryKind;
  readonly name: string | null;
  readonly at: number;
  readonly payload: string | null;
}

/** How many rows are indexed, or matched without the index, at once: fewer where they are large. */
const chunkRows = 500;
const chunkBytes = 2 ** 21;

/** The entries with ids above `lo`, up to `hi`. */
export interface IdRange {
  readonly lo: number;
  readonly hi: number;
}

/** Returns the first rows of a range, or its last: at most 500, and few where their payloads are large. */
export function chunkOf(db: Db, { lo, hi }: IdRange, order: 'oldest' | 'newest'): readonly SearchRow[] {
  const by = order === 'oldest' ? 'ASC' : 'DESC';
  // The length in bytes is in the header of a row: nothing large is read yet.
  const sizes = db.all<{ id: number; bytes: number }>(
    `SELECT id, coalesce(octet_length(payload), 0) AS bytes FROM entry WHERE id > @lo AND id <= @hi
       ORDER BY id ${by} LIMIT @limit`,
    { lo, hi, limit: chunkRows },
  );
  let bytes = 0;
  let last = sizes.at(0)?.id;
  for (const one of sizes) {
    if (bytes > chunkBytes) break;
    last = one.id;
    bytes += one.bytes;
  }
  if (last === undefined) return [];
  return db.all<SearchRow>(
    `SELECT id, tape_id, seq, kind, name, at, payload FROM entry WHERE id > @lo AND id <= @hi ORDER BY id ${by}`,
    order === 'oldest' ? { lo, hi: last } : { lo: last - 1, hi },
  );
}

/** How much may be read: entries, and characters of their payloads. The last chunk read may exceed it. */
export interface Budget {
  readonly entries: number;
  readonly chars: number;
}

/** What a search may index, and may scan without the index: about a second each, or with `all` everything. */
export function searchBudget({ all = false }: { readonly all?: boolean | undefined } = {}): Budget {
  return all
    ? { entries: Number.POSITIVE_INFINITY, chars: Number.POSITIVE_INFINITY }
    : { entries: 20_000, chars: 2 ** 24 };
}

/** Returns what is left of a budget after some rows. */
export function spend({ entries, chars }: Budget, rows: readonly SearchRow[]): Budget {
  const read = rows.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 0);
  return { entries: entries - rows.length, chars: chars - read };
}

export const isSpent = ({ entries, chars }: Budget): boolean => entries <= 0 || chars <= 0;

/**
 * Indexes the next chunk of entries, in the caller's transaction; returns its rows. Appends do not index,
 * because that would cost four times the append.
 */
function indexChunk(db: Db): readonly SearchRow[] {
  const page = chunkOf(db, { lo: indexedTo(db), hi: Number.MAX_SAFE_INTEGER }, 'oldest');
  const last = page.at(-1);
  if (last === undefined) return page;
  for (const row of page) addText(db, 'entry_fts', row);
  db.run(
    `INSERT INTO home (key, value) VALUES ('search', @value) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
    { value: String(last.id) },
  );
  return page;
}

/**
 * Indexes entries in chunks, until the budget is spent or nothing is left. A store that cannot be written now is
 * searched without.
 */
export function updateIndex(db: Db, budget: Budget = searchBudget()): void {
  if (db.words !== undefined) return;
  try {
    for (let left = budget; !isSpent(left); ) {
      const page = db.tryWrite(() => indexChunk(db));
      if (page.length === 0) return;
      left = spend(left, page);
      // Lets other writers take the lock between two chunks.
      if (!isSpent(left)) pause(2);
    }
  } catch (error) {
    if (!(error instanceof TapeError) || (error.code !== 'TAPE_LOCKED' && error.code !== 'TAPE_IO'))
      throw error;
  }
}

/**
 * Indexes a chunk, in a home where a search has begun to: called at the end of a run, so that what runs write does not
 * wait for the next search. Damage of the index is found by that search.
 */
export function continueIndex(db: Db): void {
  if (db.words !== undefined) return;
  try {
    if (indexedTo(db) > 0 && unindexed(db) >= chunkRows) db.tryWrite(() => indexChunk(db));
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
  }
}

/** Indexes everything, in chunks; returns how many entries. Others can write in between. */
export function fillIndex(db: Db, onProgress?: OnProgress): number {
  const total = unindexed(db);
  for (let done = 0; ; pause(2)) {
    const rows = db.write(() => indexChunk(db)).length;
    done += rows;
    onProgress?.({ done, total: Math.max(done, total) });
    if (rows === 0) return done;
  }
}

/** Counts the entries that are not indexed, by their ids: at most that many, as ids can be missing. */
export function unindexed(db: Db): number {
  if (db.words !== undefined) return 0;
  return Math.max(0, newestId(db) - indexedTo(db));
}

export function newestId(db: Db): number {
  return db.get<{ id: number | null }>('SELECT max(id) AS id FROM entry')?.id ?? 0;
}

/** Empties the index; the next searches fill it. */
export function dropIndex(db: Db): void {
  db.exec('DROP TABLE IF EXISTS entry_fts');
  db.exec("CREATE VIRTUAL TABLE entry_fts USING fts5(text, content='', contentless_delete=1)");
  db.run(`DELETE FROM home WHERE key = 'search'`);
}

/**
 * Merges the segments of the index, which keep the words of entries that were removed from it until then. One that is
 * damaged is emptied.
 */
export function mergeIndex(db: Db): void {
  if (db.words !== undefined) return;
  try {
    db.write(() => db.run(`INSERT INTO entry_fts (entry_fts) VALUES ('optimize')`));
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    db.write(() => dropIndex(db));
  }
}

/** Returns the id of the last indexed entry. */
export function indexedTo(db: Db): number {
  return Number(db.get<{ value: string }>(`SELECT value FROM home WHERE key = 'search'`)?.value ?? 0);
}

/** The text of an entry that is searched; empty for one without content. */
export function textOf(db: Db, { name, payload }: Pick<SearchRow, 'name' | 'payload'>): string {
  return payload === null ? '' : searchText(name, JSON.parse(payload) as Json, (hash) => loadBlob(db, hash));
}

export function addText(db: Db, table: 'entry_fts' | 'temp.fresh_fts', row: SearchRow): void {
  if (row.payload === null) return;
  const params: Record<string, SqlValue> = {
    id: row.id,
    text: textOf(db, row),
  };
  db.run(`INSERT INTO ${table} (rowid, text) VALUES (@id, @text)`, params);
}
