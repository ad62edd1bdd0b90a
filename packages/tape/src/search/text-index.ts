import { isTextRef, loadBlob, restoreBlobs } from '../entry/blob.ts';
import type { EntryKind, Seq } from '../entry/entry.ts';
import { isObject, type Json } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import { pause } from '../sqlite/lock-wait.ts';
import type { Db, SqlValue } from '../sqlite/sqlite.ts';

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

/** How many rows are indexed, or matched without the index, at once. */
export const chunkRows = 500;

/**
 * Indexes the next chunk of entries, in the caller's transaction; returns how many. Appends do not index,
 * because that would cost four times the append.
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

/** Indexes all entries, in chunks. A store that cannot be written now is searched without. */
export function updateIndex(db: Db): void {
  try {
    // Lets other writers take the lock between two chunks.
    while (db.tryWrite(() => indexChunk(db)) > 0) pause(2);
  } catch (error) {
    if (!(error instanceof TapeError) || (error.code !== 'TAPE_LOCKED' && error.code !== 'TAPE_IO'))
      throw error;
  }
}

/** Empties the index; the next search rebuilds it. */
export function dropIndex(db: Db): void {
  db.exec('DROP TABLE IF EXISTS entry_fts');
  db.exec("CREATE VIRTUAL TABLE entry_fts USING fts5(text, content='', contentless_delete=1)");
  db.run(`DELETE FROM home WHERE key = 'search'`);
}

/** Returns the id of the last indexed entry. */
export function indexedTo(db: Db): number {
  return Number(db.get<{ value: string }>(`SELECT value FROM home WHERE key = 'search'`)?.value ?? 0);
}

export function addText(db: Db, table: 'entry_fts' | 'temp.fresh_fts', row: SearchRow): void {
  if (row.payload === null) return;
  const params: Record<string, SqlValue> = {
    id: row.id,
    text: searchText(db, row.name, JSON.parse(row.payload) as Json),
  };
  db.run(`INSERT INTO ${table} (rowid, text) VALUES (@id, @text)`, params);
}

/** Fields without text, wherever they are. Those of providers hold ids, signatures and encrypted reasoning. */
const noText: ReadonlySet<string> = new Set([
  'type',
  'role',
  'toolCallId',
  'providerOptions',
  'providerMetadata',
]);
/** Fields with the id of a part of a message. */
const idsOfParts: ReadonlySet<string> = new Set(['id', 'approvalId']);

/**
 * Returns the searchable text of an entry: its name and every string in its payload, without keys, files and
 * images, and without the ids and signatures of providers.
 */
export function searchText(db: Db, name: string | null, payload: Json): string {
  const load = (hash: string) => loadBlob(db, hash);
  return [...(name === null ? [] : [name]), ...textsOf(payload, { load, depth: 0 })].join('\n');
}

interface Within {
  readonly load: (hash: string) => Uint8Array;
  readonly depth: number;
  /** True for an item of a list in the payload, such as the parts of a message. */
  readonly isPart?: boolean;
}

function textsOf(value: Json, { load, depth, isPart = false }: Within): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > 64) return [];
  const inside = { load, depth: depth + 1 };
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, { ...inside, isPart: depth === 1 }));
  // Indexes all of a large output, not only its preview.
  if (isTextRef(value)) return textsOf(restoreBlobs(value, load) as Json, inside);
  if (isObject(value) && value.type === 'blob') return [];
  return Object.entries(value).flatMap(([key, field]) =>
    noText.has(key) || (isPart && idsOfParts.has(key)) ? [] : textsOf(field as Json, inside),
  );
}
