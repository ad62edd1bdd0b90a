                                             
import { isObject } from '../entry/json.js';
import { parsed } from '../entry/parsed.js';
                                              
import { summarizerKind } from '../tape/info.js';
                                               
                                          

/** A head that something outside of a tape recorded. */
                               
                                                                           
                           
                                                  
                        
                                    
                      
 

/**
 * Returns all heads of a tape that lines of the lineage, marks of merges and compactions recorded. Reads the
 * lines and marks of its own descendants and ancestors, by index, and no others.
 */
export function recordedHeads(db    , tape         , beside        )                          {
  return [
    ...inOwnLines(beside),
    ...inLinesBelow(tape, beside),
    ...inMarks(beside),
    ...asSummarizer(db, tape),
  ];
}

/** The heads in the lines about the tape. Only a merge or discard says at which position. */
function inOwnLines({ lines }        )                 {
  const byType = lines.toSorted((a, b) => (a.type < b.type ? -1 : Number(a.type > b.type)));
  return byType.flatMap(({ g, fields = {} }) => {
    const { type, child_head, range } = fields;
    const isMerge = type === 'merge' || type === 'discard';
    return headOf(isMerge ? lastOf(range) : null, child_head, `line ${g} of the lineage`);
  });
}

/**
 * The heads of the tape in the lines of its descendants: the entry that a fork continues from, and the last entry
 * of a merge into the tape. A fork of a fork may continue from this tape as well: `reach` is the last position that
 * a descendant shares with it.
 */
function inLinesBelow({ id, base_seq }         , { below }        )                 {
  return below.flatMap(({ g, type: column, peer_id, reach, fields = {} }) => {
    const { type, parent_head, base, seq } = fields;
    const by = `line ${g} of the lineage`;
    if (!makesEdges.has(column)) return [];
    if (type === 'fork') return base === reach && base > base_seq ? headOf(base, parent_head, by) : [];
    if (peer_id !== id || typeof seq !== 'number') return [];
    // A merge writes its mark and one message; a discard writes its mark alone.
    return headOf(type === 'merge' ? seq + 1 : seq, parent_head, by);
  });
}

const makesEdges                      = new Set(['fork', 'merge', 'discard']);

/** The heads in the marks of its merges, on all tapes above it. The key of an erased mark still has the hash. */
function inMarks({ marksAbove }        )                 {
  return marksAbove.flatMap(({ name, seq, key, payload }) => {
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

function lastOf(range         )                  {
  const last          = Array.isArray(range) ? range[1] : undefined;
  return typeof last === 'number' ? last : undefined;
}
