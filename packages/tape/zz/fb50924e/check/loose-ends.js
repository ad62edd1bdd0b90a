                                             
import { isObject,                 } from '../entry/json.js';
import { parsed } from '../entry/parsed.js';
import { TapeError } from '../errors.js';
                                                      
import { parseLine } from '../lineage/read.js';
                                                 
                                              
import { summarizerKind } from '../tape/info.js';
import { isReadable } from './readable.js';

/** The sessions of a store, and those of them that an audit has to examine. */
                            
                                    
                            
                                                         
                                                                               
 

const pageTapes = 100;

/**
 * Finds the sessions with a sign of work that is not finished, or of a fork or merge that only a tape or only the lineage
 * records. A session without one has nothing that an audit reports; of one with a sign, the audit finds out. Reads all
 * sessions page by page, with two statements for each page, in place of several statements for each session.
 */
export function looseEnds(db    , onProgress             )            {
  const { total } = db.get                   ('SELECT count(*) AS total FROM tape') ?? { total: 0 };
  const ends = new Ends();
  for (let [after, done] = [-Infinity, 0]; ; ) {
    const tapes = db.all           (`${selectSigns} WHERE t.id > @after ORDER BY t.id LIMIT @limit`, {
      after,
      limit: pageTapes,
    });
    const last = tapes.at(-1);
    if (last === undefined) break;
    const edges = db.all      (selectEdges, { after, last: last.id });
    const byTape = Map.groupBy(edges, ({ tape }) => tape);
    for (const tape of tapes) ends.look(tape, byTape.get(tape.id) ?? []);
    done += tapes.length;
    onProgress?.({ done, total: Math.max(done, total) });
    after = last.id;
  }
  const found = ends.found().flatMap((id) => db.all       (selectNamed, { id }));
  return { sessions: ends.sessions, found };
}

                 
                      
                           
 

const selectNamed = `SELECT ulid AS id, name AS session FROM tape WHERE id = @id AND lifecycle NOT IN ('staging','purged')`;

/** How many of its last entries an audit reads to find the message of the last run. */
const backMax = 50;

/** The kinds of entries that a merge delivers. */
const mergeable = `('message','tool-result','result','anchor')`;

/** What the row of a tape, and the rows beside it, say. */
                     
                      
                        
                        
                     
                     
                                               
                             
                                                                        
                          
                                 
                            
                                          
                          
                                                   
                         
                                    
                                    
                                       
 

const isDelegated = '(t.deliver IS NOT NULL OR t.task IS NOT NULL)';

const selectSigns = `SELECT t.id, t.ulid, t.name, t.base_seq AS base, t.head_seq AS head,
  t.lifecycle NOT IN ('staging','purged') AS isAudited,
  (t.settled_seq <> t.head_seq OR coalesce(t.task = 'running', 0)
    OR EXISTS (SELECT 1 FROM open_run WHERE tape_id = t.id) OR EXISTS (SELECT 1 FROM stream_chunk WHERE tape_id = t.id)
    OR EXISTS (SELECT 1 FROM lease WHERE tape_id = t.id) OR EXISTS (SELECT 1 FROM inbox WHERE tape_id = t.id)
    OR EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND name IN ('merge/refused','inbox/refused'))
    OR EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND name = 'run/error' AND seq > t.head_seq - ${backMax})
    OR EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq > t.head_seq - ${backMax} AND NOT ${isReadable})
    OR EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq BETWEEN t.base_seq + 1 AND t.base_seq + 2
      AND t.parent_id IS NOT NULL AND NOT ${isReadable})) AS isOpen,
  p.ulid AS parent, coalesce(t.delivery = 'merged', 0) AS isMerged,
  CASE WHEN p.id IS NULL OR t.delivery = 'discarded' THEN 0
    WHEN ${isDelegated} THEN t.kind <> '${summarizerKind}' AND NOT (coalesce(t.deliver = 'notify', 0) AND t.task IS NOT NULL)
    ELSE t.lifecycle = 'active'
      AND EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq = t.base_seq + 2 AND kind = 'anchor' AND name = 'intention')
      AND EXISTS (SELECT 1 FROM entry WHERE tape_id = t.id AND seq > t.base_seq + 2 AND kind IN ${mergeable}) END AS isOwed,
  (SELECT count(*) FROM entry WHERE tape_id = t.id AND name >= 'merge/' AND name < 'merge0' AND kind = 'anchor') AS marks,
  s.kind AS startKind, s.name AS startName, s.payload AS startPayload
  FROM tape t LEFT JOIN tape p ON p.id = t.parent_id AND p.id < t.id
    LEFT JOIN entry s ON s.tape_id = t.id AND s.seq = t.base_seq + 1 AND s.seq <= t.head_seq AND t.parent_id IS NOT NULL`;

/** A line of the lineage that makes an edge, with what it should agree with. */
                
                                                    
                        
                        
                     
                        
                           
                          
                                        
                                 
                               
                                   
                                      
                                                               
                               
                                    
                            
                                                          
                           
 

const selectEdges = `SELECT l.tape_id AS tape, l.type, l.g, l.line, l.seq, l.to_seq AS "to", q.id AS target, q.ulid AS "into",
  m.name AS markName, m.payload AS markPayload, lower(hex(x.hash)) AS hash,
  EXISTS (SELECT 1 FROM entry WHERE tape_id = q.id AND mark = 'rewind' AND mark IN ('boundary','rewind','redaction')
    AND seq > l.seq) AS isHidden,
  EXISTS (SELECT 1 FROM entry WHERE tape_id = x.tape_id AND seq > l.to_seq
    AND (kind IN ${mergeable} OR NOT ${isReadable})) AS isGrown
  FROM lineage l LEFT JOIN tape q ON q.id = l.peer_id AND l.type <> 'fork' AND q.lifecycle <> 'staging'
    LEFT JOIN entry m ON m.tape_id = q.id AND m.seq = l.seq AND m.seq > q.base_seq AND m.seq <= q.head_seq
      AND m.kind = 'anchor' AND ${readable('m')}
    LEFT JOIN entry x ON x.tape_id = l.tape_id AND x.seq = l.to_seq AND l.type <> 'fork' AND ${readable('x')}
  WHERE l.tape_id > @after AND l.tape_id <= @last AND l.type IN ('fork','merge','discard') AND l.g > 0
  ORDER BY l.tape_id, l.type, l.g`;

function readable(of        )         {
  return isReadable.replaceAll(/\b(payload|meta)\b/g, `${of}.$1`);
}

/** Collects the tapes with loose ends. */
class Ends {
  sessions = 0;
           #found = new Set        ();
  /** Marks of merges less the lines that agree with one, by tape, where these numbers differ. */
           #unmatched = new Map                ();

  look(tape           , edges                 )       {
    this.#count(tape.id, tape.marks);
    const lines = edges.map((edge) => ({ edge, line: lineOf(edge) }));
    const forks = lines.filter(({ edge }) => edge.type === 'fork');
    const merges = lines.filter(({ edge }) => edge.type !== 'fork');
    const agreeing = merges.filter(({ edge, line }) => line !== undefined && agrees(tape, edge, line));
    for (const { edge } of agreeing) if (edge.target !== null) this.#count(edge.target, -1);
    if (tape.isAudited === 0) return;
    this.sessions += 1;
    const isDelivered =
      tape.isMerged === 1 &&
      agreeing.some(({ edge }) => edge.type === 'merge' && edge.isHidden === 0 && edge.isGrown === 0);
    const isPlain =
      tape.isOpen === 0 &&
      isForkRecorded(
        tape,
        forks.map(({ line }) => line),
      ) &&
      agreeing.length === merges.length &&
      (tape.isOwed === 0 || isDelivered);
    if (!isPlain) this.#found.add(tape.id);
  }

  /** The ids of the tapes with loose ends, in order. */
  found()                    {
    return [...this.#found.union(this.#unmatched)].sort((a, b) => a - b);
  }

  #count(tape        , marks        )       {
    const left = (this.#unmatched.get(tape) ?? 0) + marks;
    if (left === 0) this.#unmatched.delete(tape);
    else this.#unmatched.set(tape, left);
  }
}

/** Returns a line that has the form of one, and the type of the column beside it. */
function lineOf({ g, line, type }      )                          {
  try {
    const found = parseLine(g, line);
    return found.type === type ? found : undefined;
  } catch (error) {
    if (error instanceof TapeError) return undefined;
    throw error;
  }
}

/** Whether the one line of a fork names the parent that its tape begins with, and a root has none. */
function isForkRecorded(
  { parent, startKind, startName, startPayload }           ,
  lines                                      ,
)          {
  if (parent === null) return lines.length === 0;
  const [line] = lines;
  if (lines.length !== 1 || line === undefined) return false;
  const isStart = startKind === 'anchor' && startName === 'fork/start';
  const named = startPayload === null ? parent : parsed(startPayload).parent;
  return isStart && typeof named === 'string' && named === line.parent;
}

/** Whether the line of a merge or discard agrees with its columns, with the mark on the target, and with the child. */
function agrees({ ulid, name, base, head }           , edge      , line             )          {
  const { markPayload, markName, hash, type } = edge;
  if (markPayload === null || markName !== `merge/${name}`) return false;
  if (line.into !== edge.into || line.seq !== edge.seq) return false;
  const { state } = parsed(markPayload);
  if (!isObject(state)) return false;
  return isOf(state, { ulid, line, type }) && covers(state, { base, head, hash, to: edge.to });
}

function isOf(
  { child, child_head, range, strategy }            ,
  { ulid, line, type }                                                                              ,
)          {
  return (
    child === ulid &&
    child_head === line.child_head &&
    JSON.stringify(range) === JSON.stringify(line.range) &&
    (strategy === 'discard') === (type === 'discard')
  );
}

/** Whether a mark covers positions that the child has, up to the head that the mark names. */
function covers(
  { range, child_head }            ,
  { base, head, hash, to }                                                              ,
)          {
  const [first, last] = Array.isArray(range) ? range : [];
  if (typeof first !== 'number' || typeof last !== 'number') return false;
  return first > base && first <= last && last <= head && last === to && child_head === hash;
}
