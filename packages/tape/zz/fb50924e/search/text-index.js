import { isTextRef, loadBlob, restoreBlobs } from '../entry/blob.js';
                                                        
import { isObject,           } from '../entry/json.js';
import { TapeError } from '../errors.js';
                                                 
import { pause } from '../sqlite/lock-wait.js';
                                                        

/** A row of `entry`, as far as it is searched. */
                            
                      
                           
                    
                           
                               
                      
                                  
 

/** How many rows are indexed, or matched without the index, at once: fewer where they are large. */
const chunkRows = 500;
const chunkBytes = 2 ** 21;

/** The entries with ids above `lo`, up to `hi`. */
                          
                      
                      
 

/** Returns the first rows of a range, or its last: at most 500, and few where their payloads are large. */
export function chunkOf(db    , { lo, hi }         , order                     )                       {
  const by = order === 'oldest' ? 'ASC' : 'DESC';
  // The length in bytes is in the header of a row: nothing large is read yet.
  const sizes = db.all                               (
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
  return db.all           (
    `SELECT id, tape_id, seq, kind, name, at, payload FROM entry WHERE id > @lo AND id <= @hi ORDER BY id ${by}`,
    order === 'oldest' ? { lo, hi: last } : { lo: last - 1, hi },
  );
}

/** How much may be read: entries, and characters of their payloads. The last chunk read may exceed it. */
                         
                           
                         
 

/** What a search may index, and may scan without the index: about a second each, or with `all` everything. */
export function searchBudget({ all = false }                                         = {})         {
  return all
    ? { entries: Number.POSITIVE_INFINITY, chars: Number.POSITIVE_INFINITY }
    : { entries: 20_000, chars: 2 ** 24 };
}

/** Returns what is left of a budget after some rows. */
export function spend({ entries, chars }        , rows                      )         {
  const read = rows.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 0);
  return { entries: entries - rows.length, chars: chars - read };
}

export const isSpent = ({ entries, chars }        )          => entries <= 0 || chars <= 0;

/**
 * Indexes the next chunk of entries, in the caller's transaction; returns its rows. Appends do not index,
 * because that would cost four times the append.
 */
function indexChunk(db    )                       {
  const page = chunkOf(db, { lo: indexedTo(db), hi: Number.MAX_SAFE_INTEGER }, 'oldest');
  const last = page.at(-1);
  if (last === undefined) return page;
  for (const row of page) addText(db, 'entry_fts', row);
  db.run(
    `INSERT INTO home (key, value) VALUES ('search', @value) ON CONFLICT DO UPDATE SET value = excluded.value`,
    { value: String(last.id) },
  );
  return page;
}

/**
 * Indexes entries in chunks, until the budget is spent or nothing is left. A store that cannot be written now is
 * searched without.
 */
export function updateIndex(db    , budget         = searchBudget())       {
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
export function continueIndex(db    )       {
  try {
    if (indexedTo(db) > 0 && unindexed(db) >= chunkRows) db.tryWrite(() => indexChunk(db));
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
  }
}

/** Indexes everything, in chunks; returns how many entries. Others can write in between. */
export function fillIndex(db    , onProgress             )         {
  const total = unindexed(db);
  for (let done = 0; ; pause(2)) {
    const rows = db.write(() => indexChunk(db)).length;
    done += rows;
    onProgress?.({ done, total: Math.max(done, total) });
    if (rows === 0) return done;
  }
}

/** Counts the entries that are not indexed, by their ids: at most that many, as ids can be missing. */
export function unindexed(db    )         {
  return Math.max(0, newestId(db) - indexedTo(db));
}

export function newestId(db    )         {
  return db.get                       ('SELECT max(id) AS id FROM entry')?.id ?? 0;
}

/** Empties the index; the next searches fill it. */
export function dropIndex(db    )       {
  db.exec('DROP TABLE IF EXISTS entry_fts');
  db.exec("CREATE VIRTUAL TABLE entry_fts USING fts5(text, content='', contentless_delete=1)");
  db.run(`DELETE FROM home WHERE key = 'search'`);
}

/** Returns the id of the last indexed entry. */
export function indexedTo(db    )         {
  return Number(db.get                   (`SELECT value FROM home WHERE key = 'search'`)?.value ?? 0);
}

export function addText(db    , table                                , row           )       {
  if (row.payload === null) return;
  const params                           = {
    id: row.id,
    text: searchText(db, row.name, JSON.parse(row.payload)        ),
  };
  db.run(`INSERT INTO ${table} (rowid, text) VALUES (@id, @text)`, params);
}

/** Fields without text, wherever they are. Those of providers hold ids, signatures and encrypted reasoning. */
const noText                      = new Set([
  'type',
  'role',
  'toolCallId',
  'providerOptions',
  'providerMetadata',
]);
/** Fields with the id of a part of a message. */
const idsOfParts                      = new Set(['id', 'approvalId']);

/**
 * Returns the searchable text of an entry: its name and every string in its payload, without keys, files and
 * images, and without the ids and signatures of providers.
 */
export function searchText(db    , name               , payload      )         {
  const load = (hash        ) => loadBlob(db, hash);
  return [...(name === null ? [] : [name]), ...textsOf(payload, { load, depth: 0 })].join('\n');
}

                  
                                              
                         
                                                                                   
                            
 

function textsOf(value      , { load, depth, isPart = false }        )           {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > 64) return [];
  const inside = { load, depth: depth + 1 };
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, { ...inside, isPart: depth === 1 }));
  // Indexes all of a large output, not only its preview.
  if (isTextRef(value)) return textsOf(restoreBlobs(value, load)        , inside);
  if (isObject(value) && value.type === 'blob') return [];
  return Object.entries(value).flatMap(([key, field]) =>
    noText.has(key) || (isPart && idsOfParts.has(key)) ? [] : textsOf(field        , inside),
  );
}
