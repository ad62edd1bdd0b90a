                                             
import { hex } from '../entry/hash.js';
import { isObject,                 } from '../entry/json.js';
import { parsed } from '../entry/parsed.js';
import { hashLine } from '../lineage/line.js';
                                              
import { summarizerKind } from '../tape/info.js';
                                               

/** A head that something outside of a tape recorded. */
                               
                                                                           
                           
                                                  
                        
                                    
                      
 

/**
 * Returns all heads of a tape that lines of the lineage, marks of merges and compactions recorded. Reads the
 * lines and marks of its own descendants and ancestors, by index, and no others.
 */
export function recordedHeads(db    , tape         )                          {
  return [
    ...inOwnLines(db, tape),
    ...inLinesBelow(db, tape),
    ...inMarks(db, tape),
    ...asSummarizer(db, tape),
  ];
}

                
                     
                        
                            
 

/** The heads in the lines about the tape. Only a merge or discard says at which position. */
function inOwnLines(db    , { id }         )                 {
  return db
    .all      ('SELECT g, line, hash FROM lineage WHERE tape_id = @id ORDER BY type, g', { id })
    .flatMap((row) => {
      const { type, child_head, range } = lineOf(row);
      const isMerge = type === 'merge' || type === 'discard';
      return headOf(isMerge ? lastOf(range) : null, child_head, `line ${row.g} of the lineage`);
    });
}

/**
 * The heads of the tape in the lines of its descendants: the entry that a fork continues from, and the last entry
 * of a merge into the tape. A fork of a fork may continue from this tape as well: `reach` is the last position that
 * a descendant shares with it.
 */
function inLinesBelow(db    , { id, base_seq }         )                 {
  return db
    .all                                                                 (
      `WITH RECURSIVE below(id, reach) AS (
         SELECT @id, 9007199254740991
         UNION SELECT c.id, min(b.reach, c.base_seq) FROM below b JOIN tape c ON c.parent_id = b.id AND c.id > b.id)
       SELECT l.g, l.line, l.hash, b.reach, l.peer_id FROM below b JOIN lineage l ON l.tape_id = b.id
         WHERE b.id <> @id AND l.type IN ('fork', 'merge', 'discard')
           AND (l.peer_id = @id OR (l.type = 'fork' AND b.reach > @base))`,
      { id, base: base_seq },
    )
    .flatMap((row) => {
      const { type, parent_head, base, seq } = lineOf(row);
      const by = `line ${row.g} of the lineage`;
      if (type === 'fork') return base === row.reach && base > base_seq ? headOf(base, parent_head, by) : [];
      if (row.peer_id !== id || typeof seq !== 'number') return [];
      // A merge writes its mark and one message; a discard writes its mark alone.
      return headOf(type === 'merge' ? seq + 1 : seq, parent_head, by);
    });
}

                
                        
                    
                       
                                  
 

/** The heads in the marks of its merges, on all tapes above it. The key of an erased mark still has the hash. */
function inMarks(db    , { id, ulid, parent_id }         )                 {
  if (parent_id === null) return [];
  return db
    .all      (
      `WITH RECURSIVE above(id) AS (
         SELECT parent_id FROM tape WHERE id = @id AND parent_id < id
         UNION SELECT t.parent_id FROM above a JOIN tape t ON t.id = a.id WHERE t.parent_id < t.id)
       SELECT t.name, e.seq, e.key, e.payload FROM above a JOIN tape t ON t.id = a.id
         JOIN entry e ON e.tape_id = a.id AND e.key >= @from AND e.key < @to`,
      { id, from: `merge:${ulid}:`, to: `merge:${ulid};` },
    )
    .flatMap(({ name, seq, key, payload }) => {
      const by = `the mark ${name}@${seq}`;
      if (payload === null) return headOf(null, key.split(':')[2], by);
      const { state } = parsed(payload);
      return isObject(state) ? headOf(lastOf(state.range), state.child_head, by) : [];
    });
}

/** The heads of a summarizer in the compactions, and in the failed ones, of its parent. */
function asSummarizer(db    , { ulid, kind, parent_id, parent_name }         )                 {
  if (kind !== summarizerKind || parent_id === null) return [];
  return db
    .all                                      (
      `SELECT seq, payload FROM entry WHERE tape_id = @parent_id AND mark = 'boundary'
           AND mark IN ('boundary','rewind','redaction')
         UNION ALL
       SELECT seq, payload FROM entry WHERE tape_id = @parent_id AND name = 'context/not-compacted'`,
      { parent_id },
    )
    .flatMap(({ seq, payload }) => {
      const value = parsed(payload);
      const summarizer = isObject(value.state) ? value.state.summarizer : value.summarizer;
      if (!isObject(summarizer) || summarizer.id !== ulid) return [];
      return headOf(null, summarizer.head, `the summary ${parent_name}@${seq}`);
    });
}

function headOf(seq                        , hash         , by        )                 {
  return typeof hash === 'string' && seq !== undefined ? [{ seq, hash, by }] : [];
}

/** Returns the fields of a line; none when it was changed, which `verifyLineage` reports: it proves nothing then. */
function lineOf({ line, hash }      )             {
  return hashLine(line) === hex(hash) ? parsed(line) : {};
}

function lastOf(range         )                  {
  const last          = Array.isArray(range) ? range[1] : undefined;
  return typeof last === 'number' ? last : undefined;
}
