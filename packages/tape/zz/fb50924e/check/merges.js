                                             
import { sha256 } from '../entry/hash.js';
import { isObject,                            } from '../entry/json.js';
import { parsed } from '../entry/parsed.js';
import { cutPart, mergeFrame, mergeSource } from '../merge/block.js';
import { backMax, collectResult, textVersion } from '../merge/collect.js';
                                              
import { segments } from '../tape/interval.js';
import {               tapeById } from '../tape/tape.js';
import {
                   
            
               
  markColumns,
  markOf,
  markRows,
  mergesInLines,
} from './marks.js';
import { factFaults } from './merge-facts.js';
import {               problemsOf } from './problem.js';
import { isReadable } from './readable.js';

/** An entry of a merge: its mark, or the message after it. */
                      
                    
                         
                            
 

/**
 * Compares the marks of merges on a tape, up to a position, with the message after each and with the child's own
 * text: one digest for all three. Of an erased mark only name and key are compared; what a caller gave as text has no
 * other source.
 */
export function* verifyMerges(db    , tape         , to      = tape.head_seq)                     {
  const problem = problemsOf(tape.name);
  const recorded = mergesInLines(db, tape);
  const seqs = new Set([...markRows(db, tape).map(({ seq }) => seq), ...recorded.keys()]);
  for (const seq of [...seqs].filter((one) => one <= to).toSorted((a, b) => a - b)) {
    const row = db.get         (`SELECT ${markColumns} FROM entry WHERE tape_id = @id AND seq = @seq`, {
      id: tape.id,
      seq,
    });
    // A missing entry is reported by its chain.
    const fault = row === undefined ? undefined : faultIn(db, tape, row, recorded.get(seq));
    if (fault !== undefined)
      yield problem('merge-contradicted', seq, `the mark of a merge ${tape.name}@${seq} ${fault}`);
  }
}

/** Returns what contradicts an entry that should be a mark. `recorded`: the line of the lineage that names it. */
function faultIn(db    , tape         , row         , recorded                         )                     {
  const [scheme, ulid = '', head] = row.key?.split(':') ?? [];
  if (row.kind !== 'anchor' || row.mark !== 'anchor' || scheme !== 'merge' || head === undefined)
    return 'has not the form of one';
  const mark = row.payload === null ? undefined : markOf(row.seq, row.payload);
  if (mark === undefined && row.payload !== null) return 'has not the form of one';
  const child = tapeByUlid(db, mark === undefined ? ulid : String(mark.state.child));
  if (child === undefined) return 'names a session that does not exist';
  // What such a child reads is not known. The missing row is reported of the session that needs it.
  if (lacksAncestor(db, child)) return undefined;
  if (mark !== undefined && row.key?.replace(/:\d+$/, '') !== `merge:${child.ulid}:${mark.childHead}`)
    return 'differs from its own key';
  if (recorded !== undefined && recorded.ulid !== child.ulid)
    return 'is of another child than the lineage says';
  if (row.name !== `merge/${child.name}` || (mark !== undefined && mark.state.session !== child.name))
    return `has not the name of its child ${child.name}`;
  if (mark === undefined) return undefined;
  return lineFault(mark, recorded?.fields) ?? faultOf(db, { tape, child, mark });
}

/** Returns how a mark differs from its line. Lines of schema 1 have no version of the text. */
function lineFault({ state, range }      , line                        )                     {
  if (line === undefined) return undefined;
  if (JSON.stringify(range) !== JSON.stringify(line.range ?? null))
    return 'covers another range than the lineage says';
  if ((state.strategy === 'discard') !== (line.type === 'discard'))
    return 'records another act than the lineage';
  return line.text_version === undefined || line.text_version === state.text_version
    ? undefined
    : 'says of its text another origin than the lineage';
}

/** Yields the heads of children, as the marks on a tape recorded them, that the children do not have. */
export function* verifyMergedHeads(db    , tape         )                     {
  for (const { seq, payload } of markRows(db, tape)) {
    const mark = payload === null ? undefined : markOf(seq, payload);
    const child = mark === undefined ? undefined : tapeByUlid(db, String(mark.state.child));
    if (mark === undefined || child === undefined) continue;
    const [, last] = mark.range;
    const problem = problemsOf(child.name);
    const by = `the mark ${tape.name}@${seq} recorded ${mark.childHead.slice(0, 8)}`;
    if (last > child.head_seq)
      yield problem(
        'tail-missing',
        child.head_seq + 1,
        `${child.name} ends at ${child.head_seq}, but it once went on to ${last}; ${by}: its tail was cut off`,
      );
    else if (hashAt(db, child, last) !== mark.childHead)
      yield problem(
        'head-contradicted',
        last,
        `${child.name}@${last} has another hash; ${by}: an entry up to there was rewritten`,
      );
  }
}

                 
                         
                          
                      
 

/** Returns what contradicts a mark, in words that follow its name. */
function faultOf(db    , { tape, child, mark }       )                     {
  const { state, seq } = mark;
  // A head that is not there contradicts the child, and is reported there.
  if (hashAt(db, child, mark.range[1]) !== mark.childHead) return undefined;
  const version = state.text_version ?? null;
  if (version !== null && version !== textVersion)
    return `names unknown rules for its text: ${String(version)}`;
  const collected = isUnknown(db, child, mark) ? undefined : collectResult(db, child, mark.range);
  const isOwn = collected !== undefined && sha256(collected.text) === state.result_digest;
  if (version !== null && collected !== undefined && !isOwn)
    return `has another digest than the result of ${child.name}@${mark.range[0]}-${mark.range[1]}`;
  const wrong = version === null ? [] : factFaults(db, { tape, child, ...mark }, collected);
  if (wrong.length > 0) return `has another ${wrong.join(', ')} than ${child.name}, or its own place, gives`;
  // A given text has no version, nor has a text of schema 1: it is the child's own where it has its digest.
  const own = isOwn ? collected : undefined;
  if (state.strategy === 'discard') return undefined;
  const message = entryOf(db, tape, seq + 1);
  if (message === undefined) return 'has no message after it';
  if (message.payload === null) return undefined;
  const inner = insideOf(message, { child, mark });
  if (inner === undefined) return `is not followed by its message: ${tape.name}@${seq + 1} is another one`;
  if (sha256(inner) === state.result_digest) return undefined;
  const part = cutPart(inner);
  const isPart =
    part !== undefined &&
    (own === undefined ||
      (own.text.startsWith(part.text) && own.text.length === part.text.length + part.left));
  return isPart ? undefined : `has another digest than the text of its message ${tape.name}@${seq + 1}`;
}

/** Returns the child's text in a merge's message; undefined when the message is not that of the mark. */
function insideOf(
  { payload, meta }            ,
  { child, mark }                               ,
)                     {
  const { state, childHead } = mark;
  const text = textOf(payload);
  const source = mergeSource({ child: child.name, fromAnchor: child.from_anchor, range: mark.range });
  if (text === undefined || meta.source !== 'merge' || meta.child !== child.ulid) return undefined;
  if (meta.session !== child.name || meta.from !== source) return undefined;
  const [before, after] = mergeFrame({
    child: child.name,
    source,
    status: String(state.status),
    partial: state.partial === true,
    childHead,
  });
  if (!text.startsWith(before) || !text.endsWith(after)) return undefined;
  return text.slice(before.length, text.length - after.length);
}

/** Whether an entry that the merge had read was erased after it, or cannot be read. */
function isUnknown(db    , child         , { range: [from, to] }      )          {
  return (
    db.get(
      `SELECT 1 FROM entry WHERE tape_id = @id AND mark = 'redaction' AND mark IN ('boundary','rewind','redaction')
         AND seq > @to AND ref BETWEEN @from AND @to
         UNION ALL SELECT 1 FROM entry WHERE tape_id = @id AND seq BETWEEN @from AND @to
           AND NOT ${isReadable} LIMIT 1`,
      { id: child.id, from: from - backMax, to },
    ) !== undefined
  );
}

/** The text of a message of a merge, which is one text of role `user`. */
function textOf(payload      )                     {
  if (!isObject(payload) || payload.role !== 'user' || !Array.isArray(payload.content)) return undefined;
  const [part, ...more] = payload.content;
  const isText = isObject(part) && part.type === 'text' && more.length === 0;
  return isText && typeof part.text === 'string' ? part.text : undefined;
}

function entryOf(db    , tape         , seq     )                         {
  const row = db.get                                                               (
    'SELECT kind, payload, meta FROM entry WHERE tape_id = @id AND seq = @seq',
    { id: tape.id, seq },
  );
  if (row?.kind !== 'message') return undefined;
  return { seq, payload: row.payload === null ? null : parsed(row.payload), meta: parsed(row.meta ?? '{}') };
}

/** Returns the hash of an entry that a session reads, in lower-case hex. */
function hashAt(db    , tape         , seq     )                     {
  const [owner] = segments(db, { ...tape, floor_seq: 0 }, seq - 1, seq);
  if (owner === undefined) return undefined;
  return db.get                  (
    'SELECT lower(hex(hash)) AS hash FROM entry WHERE tape_id = @id AND seq = @seq',
    { id: owner.tapeId, seq },
  )?.hash;
}

/** Whether the row of an ancestor of a session is missing. */
function lacksAncestor(db    , tape         )          {
  let at                                    = tape;
  while (at.parent_id !== null) {
    const above = db.get           ('SELECT id, parent_id FROM tape WHERE id = @id', { id: at.parent_id });
    if (above === undefined) return true;
    // A parent that is younger than its child is reported by the child, and is not followed.
    if (above.id >= at.id) return false;
    at = above;
  }
  return false;
}

function tapeByUlid(db    , ulid        )                      {
  const row = db.get                ('SELECT id FROM tape WHERE ulid = @ulid', { ulid });
  return row === undefined ? undefined : tapeById(db, row.id);
}
