import { clientCalls } from '../entry/client-calls.js';
                                                        
import { isObject } from '../entry/json.js';
                                              
                                                       

/**
 * The client-side tool calls that are open at the end of a tape, and the position before the first of them. A
 * batch begins with the assistant message that makes the calls and ends with the last result. No fork, merge
 * or rewind cuts inside it.
 */
                            
                     
                                    
 

/** Returns the open batch after an entry; `undefined` when all calls are settled. Pure. */
export function nextBatch(
  open                       ,
  entry                                                                            ,
)                        {
  if (entry.kind === 'rewind') return undefined;
  if (entry.kind === 'message') {
    const started = clientCalls(entry.payload);
    if (started.length === 0) return open;
    return { from: open?.from ?? entry.seq - 1, calls: [...(open?.calls ?? []), ...started] };
  }
  if (entry.kind !== 'tool-result' || open === undefined || !isObject(entry.payload)) return open;
  // Some servers give two calls of one answer the same id: each result settles one of them.
  const settled = open.calls.indexOf(String(entry.payload.toolCallId));
  if (settled === -1) return open;
  const calls = open.calls.toSpliced(settled, 1);
  return calls.length === 0 ? undefined : { from: open.from, calls };
}

/** Returns the batch that is open at a tape's head. */
export function loadBatch(db    , tapeId        )                        {
  const row = db.get                                                      (
    'SELECT from_seq, to_seq, calls FROM open_calls WHERE tape_id = @tapeId ORDER BY from_seq DESC LIMIT 1',
    { tapeId },
  );
  if (row === undefined || row.to_seq !== null) return undefined;
  return { from: row.from_seq, calls: JSON.parse(row.calls)             };
}

const batchRows = 200;

/** Yields the positions of a segment that lie in batches, batch by batch, from its beginning or from its end. */
export function* batchesIn(db    , { tapeId, lo, hi }         , order                )                      {
  // The newest batch that begins before the first position can contain it.
  const { first = lo } =
    db.get                (
      'SELECT from_seq AS first FROM open_calls WHERE tape_id = @tapeId AND from_seq <= @lo ORDER BY from_seq DESC LIMIT 1',
      { tapeId, lo },
    ) ?? {};
  for (let [from, to] = [first, hi]; ; ) {
    const rows = db.all                                       (
      `SELECT from_seq, to_seq FROM open_calls WHERE tape_id = @tapeId AND from_seq >= @from AND from_seq < @to
         ORDER BY from_seq ${order} LIMIT @limit`,
      { tapeId, from, to, limit: batchRows },
    );
    for (const { from_seq, to_seq } of rows) {
      const batch = { lo: Math.max(lo, from_seq), hi: Math.min(hi, to_seq ?? hi) };
      if (batch.lo < batch.hi) yield batch;
    }
    const last = rows.at(-1)?.from_seq;
    if (last === undefined || rows.length < batchRows) return;
    if (order === 'ASC') from = last + 1;
    else to = last;
  }
}

/** Records how an entry at `seq` changed the batch. The rows can be rebuilt from the entries. */
export function saveBatch(
  db    ,
  tapeId        ,
  seq     ,
  { was, now }                                                            ,
)       {
  if (was === now) return;
  const from = (now ?? was)?.from ?? seq;
  db.run(
    `INSERT INTO open_calls (tape_id, from_seq, to_seq, calls) VALUES (@tapeId, @from, @to, @calls)
       ON CONFLICT DO UPDATE SET to_seq = @to, calls = @calls`,
    { tapeId, from, to: now === undefined ? seq - 1 : null, calls: JSON.stringify(now?.calls ?? []) },
  );
}
