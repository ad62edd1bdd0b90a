import { clientCalls } from '../entry/client-calls.js';
                                                                           
import { isObject,           } from '../entry/json.js';
import { tapeName } from '../entry/name.js';
import { sourceTime } from '../entry/source-time.js';
import { TapeError } from '../errors.js';
import { isRareKind } from '../sqlite/schema.js';
                                                        
import {               segments } from './interval.js';
import { batchesIn } from './open-calls.js';
import {               tapeById } from './tape.js';

/** The columns of `entry` that a reader receives. */
                    
                      
                       
                        
                             
                               
                              
                                  
                               
                      
                              
                        
 

/** Selects the hash as text: a buffer per row costs more than the rest of the row. */
const columns = 'id, seq, kind, mark, name, ref, payload, meta, at, key, lower(hex(hash)) AS hash';

/** Selects entries of a session; all bounds are inclusive. */
                             
                      
                    
                            
                                              
                         
                                                                                                   
                               
                                                                                        
                           
                                                                          
                         
                                             
                         
                          
 

const pageRows = 128;

/**
 * Reads the entries of a session in order, page by page: no statement stays open between pages, so a slow
 * reader never blocks a writer.
 */
export function* readEntries(db    , tape         , query             = {})                   {
  const lo = Math.max(query.own === true ? tape.base_seq : tape.floor_seq, (query.from ?? 1) - 1);
  const hi = Math.min(query.own === false ? tape.base_seq : tape.head_seq, query.to ?? tape.head_seq);
  const { namePrefix } = query;
  if (namePrefix !== undefined) {
    yield* readNamed(db, tape, { lo, hi, query, namePrefix });
    return;
  }
  if (query.calls === true) {
    yield* readCalls(db, tape, { lo, hi, query });
    return;
  }
  if (query.last !== undefined) {
    yield* readLast(db, tape, { lo, hi, only: query, last: query.last });
    return;
  }
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  for (const segment of segments(db, tape, lo, hi).reverse()) {
    const toEntry = entriesOf(db, tape, segment);
    for (let after = segment.lo; left > 0; ) {
      const rows = page(db, { ...segment, lo: after }, query, Math.min(pageRows, left), 'ASC');
      for (const row of rows) yield toEntry(row);
      left -= rows.length;
      after = rows.at(-1)?.seq ?? segment.hi;
      if (rows.length < pageRows) break;
    }
  }
}

/** Reads the messages with client-side calls: each is in a batch, whose positions are stored. */
function* readCalls(
  db    ,
  tape         ,
  { lo, hi, query }                                         ,
)                   {
  const { last, limit = Number.POSITIVE_INFINITY } = query;
  if (last === undefined) {
    let left = limit;
    for (const entry of callsIn(db, tape, { lo, hi, query, order: 'ASC' })) {
      if (left <= 0) return;
      yield entry;
      left -= 1;
    }
    return;
  }
  const found          = [];
  for (const entry of callsIn(db, tape, { lo, hi, query, order: 'DESC' })) {
    if (found.length >= last) break;
    found.push(entry);
  }
  yield* found.reverse();
}

function* callsIn(
  db    ,
  tape         ,
  { lo, hi, query, order }                                                                ,
)                   {
  const { kind = 'message', name } = query;
  if (kind !== 'message') return;
  const newestFirst = segments(db, tape, lo, hi);
  for (const segment of order === 'DESC' ? newestFirst : newestFirst.reverse()) {
    const toEntry = entriesOf(db, tape, segment);
    for (const batch of batchesIn(db, segment, order))
      for (let { lo: after, hi: to } = batch; after < to; ) {
        const only = { kind, ...(name !== undefined && { name }) };
        const rows = page(db, { ...segment, lo: after, hi: to }, only, pageRows, order);
        for (const row of rows) {
          const entry = toEntry(row);
          if (clientCalls(entry.payload).length > 0) yield entry;
        }
        const end = rows.at(-1)?.seq;
        if (end === undefined || rows.length < pageRows) break;
        if (order === 'ASC') after = end;
        else to = end - 1;
      }
  }
}

function readLast(
  db    ,
  tape         ,
  { lo, hi, only, last }                                                ,
)          {
  const entries          = [];
  for (const segment of segments(db, tape, lo, hi)) {
    if (entries.length >= last) break;
    const toEntry = entriesOf(db, tape, segment);
    for (const row of page(db, segment, only, last - entries.length, 'DESC')) entries.push(toEntry(row));
  }
  return entries.reverse();
}

/** The condition for a kind. The likelihood lets SQLite seek a rare one, in place of reading all positions. */
function ofKind(kind           )         {
  const isRare = kind !== 'message' && kind !== 'tool-result' && kind !== 'event';
  return isRare ? `AND likelihood(kind = @kind, 0.001) AND ${isRareKind}` : 'AND kind = @kind';
}

/** Filters the entries of a segment. */
                                              

function page(
  db    ,
  { tapeId, lo, hi }         ,
  { kind, name }      ,
  limit        ,
  order                ,
)             {
  const params                           = {
    tapeId,
    lo,
    hi,
    limit,
    ...(kind !== undefined && { kind }),
    ...(name !== undefined && { name }),
  };
  return db.all          (
    `SELECT ${columns} FROM entry WHERE tape_id = @tapeId AND seq > @lo AND seq <= @hi
       ${name === undefined ? '' : 'AND name = @name'}
       ${kind === undefined ? '' : ofKind(kind)} ORDER BY seq ${order} LIMIT @limit`,
    params,
  );
}

/**
 * Reads the entries whose name begins with a prefix. An index on names finds their positions, in another order
 * than that of the tape, without reading other entries.
 */
function* readNamed(
  db    ,
  tape         ,
  { lo, hi, query, namePrefix }                                                             ,
)                   {
  const { kind, name, last, limit } = query;
  const named = segments(db, tape, lo, hi).flatMap((segment) => {
    const toEntry = entriesOf(db, tape, segment);
    // The sign keeps SQLite from searching by position.
    return db
      .all              (
        `SELECT seq FROM entry WHERE tape_id = @tapeId AND name >= @namePrefix AND name < @end
           AND +seq > @lo AND +seq <= @hi
           ${name === undefined ? '' : 'AND name = @name'} ${kind === undefined ? '' : 'AND kind = @kind'}`,
        {
          ...segment,
          namePrefix,
          end: `${namePrefix}\u{10ffff}`,
          ...(kind !== undefined && { kind }),
          ...(name !== undefined && { name }),
        },
      )
      .map(({ seq }) => ({ tapeId: segment.tapeId, seq, toEntry }));
  });
  named.sort((a, b) => a.seq - b.seq);
  const asked = last === undefined ? named.slice(0, limit) : last > 0 ? named.slice(-last) : [];
  for (const { tapeId, seq, toEntry } of asked) {
    const row = db.get          (`SELECT ${columns} FROM entry WHERE tape_id = @tapeId AND seq = @seq`, {
      tapeId,
      seq,
    });
    if (row !== undefined) yield toEntry(row);
  }
}

/** Returns one entry of a session, own or inherited. */
export function entryAt(db    , tape         , seq     )                    {
  const [entry] = readEntries(db, tape, { from: seq, to: seq });
  return entry;
}

/**
 * Returns one entry of a session.
 * @throws TAPE_NO_SEQ when the session has no such position
 */
export function getEntry(db    , tape         , seq     )        {
  const entry = entryAt(db, tape, seq);
  if (entry === undefined) throw noSeq(tape, seq);
  return entry;
}

export function noSeq(tape         , seq     )            {
  const has =
    tape.head_seq === tape.floor_seq ? 'it is empty' : `it has ${tape.floor_seq + 1} to ${tape.head_seq}`;
  return new TapeError('TAPE_NO_SEQ', `cannot find ${tape.name}@${seq}: ${has}`, {
    data: { session: tape.name, seq, from: tape.floor_seq + 1, to: tape.head_seq },
  });
}

/** Returns a function that makes entries of the rows of one segment. */
function entriesOf(db    , requested         , { tapeId }         )                           {
  const owner = tapeId === requested.id ? requested : tapeById(db, tapeId);
  const tape = tapeName(owner.realm, owner.name, owner.incarnation);
  const session = requested.name;
  const inherited = owner.id !== requested.id;
  return (row) => {
    const meta = row.meta === null ? {} : parseMeta(owner, row, row.meta);
    const sourceAt = sourceTime(meta);
    const { mark, name, ref, at, key, hash } = row;
    const isElsewhere = row.id <= db.elsewhere.entries || meta.elsewhere === true;
    const payload = row.payload === null ? null : parseStored(owner, row, row.payload);
    const kind = row.kind             ;
    // Most entries have nothing else, and what an object may have costs more than what it has.
    if (
      mark === null &&
      name === null &&
      ref === null &&
      key === null &&
      sourceAt === undefined &&
      !isElsewhere
    )
      return { session, tape, seq: row.seq, kind, payload, meta, at, hash, inherited };
    return {
      session,
      tape,
      seq: row.seq,
      kind,
      ...(mark !== null && { mark }),
      ...(name !== null && { name }),
      ...(ref !== null && { ref }),
      payload,
      meta,
      at,
      ...(sourceAt !== undefined && { sourceAt }),
      ...(key !== null && { key }),
      hash,
      inherited,
      ...(isElsewhere && { elsewhere: true          }),
    };
  };
}

function parseMeta(owner         , row          , text        )       {
  const meta = parseStored(owner, row, text);
  if (isObject(meta)) return meta;
  throw unreadable(owner, row, 'its stored meta is not a JSON object');
}

function parseStored(owner         , row          , text        )       {
  try {
    return JSON.parse(text)        ;
  } catch (cause) {
    throw unreadable(owner, row, 'its stored text is not JSON', cause);
  }
}

function unreadable({ name }         , { seq }          , why        , cause          )            {
  return new TapeError('TAPE_CORRUPT', `cannot read ${name}@${seq}: ${why}`, {
    data: { session: name, seq },
    cause,
  });
}
