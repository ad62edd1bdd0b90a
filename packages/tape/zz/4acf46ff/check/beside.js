                                             
                                                   
import { parsed } from '../entry/parsed.js';
import { hashLine } from '../lineage/line.js';
                                              
import {                callsColumns } from '../tape/calls.js';
import { selectTape,               tapeById } from '../tape/tape.js';
import { KeptEntries } from './kept-entries.js';

/** A line of the lineage. */
                
                     
                        
                                                                       
                                  
                  
                               
                                                                                   
                                          
 

/** A line about the tape itself, and what repeats it in columns. */
                                
                            
                                                   
                               
                           
                              
 

/** A line about a descendant of a tape. */
                                  
                               
                        
                                                                    
                      
 

/** The mark of a merge of the tape, on a tape above it. */
                     
                        
                    
                       
                                  
 

/** An entry that has the name or the key of a merge's mark, or that a line of the lineage calls one. */
                          
                    
                        
                               
                               
                              
                                  
 

                           
                         
                              
                         
 

                    
                         
                         
                            
                          
                     
 

/** What is stored beside the entries of a tape, and what of other tapes is about it. */
                         
                  
                                     
                                       
                                            
                                                                                 
                                     
                                        
                                  
                                      
                                                      
                                                                         
                                        
                                                                                                          
                                                   
                                                                                
                                                                                                                             
                                  
                                                                         
                                           
 

/** The ids of tapes that are verified together, both included. */
                      
                         
                        
 

/**
 * Reads what is beside the tapes of a run, each table when it is first needed, with one statement in place of one for each
 * tape. Rows of tapes and texts of lines are kept, since several checks look at them.
 */
export class BesideTapes {
           #db    ;
           #run     ;
           #tapes = new Map                 ();
           #byUlid = new Map                 ();
           #beside = new Map                ();
           #read = new Map                                                 ();
           #fields = new Map                                ();
           #parsed = new Map                    ();
  /** The entries of the run, if its tapes are short. */
           entries                         ;

  constructor(db    , run     , { keepsEntries = false }                                      = {}) {
    this.#db = db;
    this.#run = run;
    this.entries = keepsEntries ? new KeptEntries(db, run) : undefined;
  }

  /** Reads the rows of the tapes of the run, in order. */
  rows()                     {
    const rows = this.#db.all         (`${selectTape} WHERE t.id BETWEEN @first AND @last ORDER BY t.id`, {
      ...this.#run,
    });
    for (const row of rows) this.#keep(row);
    return rows;
  }

  /** What is beside a tape of the run. */
  of(id        )         {
    const known = this.#beside.get(id);
    if (known !== undefined) return known;
    const fieldsOf = (line            ) => this.#fieldsOf(line);
    const beside = new BesideTape((sql) => this.#rowsOf(id, sql), fieldsOf);
    this.#beside.set(id, beside);
    return beside;
  }

  /** Parses a stored text. Of short tapes each is parsed once, since several checks read the same entries. */
  parsed(text               )             {
    if (this.entries === undefined || text === null) return parsed(text);
    const known = this.#parsed.get(text);
    if (known !== undefined) return known;
    const value = parsed(text);
    this.#parsed.set(text, value);
    return value;
  }

  /**
   * The row of a tape, of the run or not.
   * @throws TAPE_CORRUPT when it is missing
   */
  tape(id        )          {
    return this.#tapes.get(id) ?? this.#keep(tapeById(this.#db, id));
  }

  /** The row of a session's tape, of the run or not. */
  tapeOf(ulid         )                      {
    if (typeof ulid !== 'string') return undefined;
    const known = this.#byUlid.get(ulid);
    if (known !== undefined) return known;
    const row = this.#db.get                ('SELECT id FROM tape WHERE ulid = @ulid', { ulid });
    return row === undefined ? undefined : this.tape(row.id);
  }

  #keep(row         )          {
    this.#tapes.set(row.id, row);
    this.#byUlid.set(row.ulid, row);
    return row;
  }

  /** Whether the row of an ancestor of a session is missing. */
  lacksAncestor(tape         )          {
    for (let at = tape; at.parent_id !== null; at = this.tape(at.parent_id)) {
      if (!this.#has(at.parent_id)) return true;
      // A parent that is younger than its child is reported by the child, and is not followed.
      if (at.parent_id >= at.id) return false;
    }
    return false;
  }

  #has(id        )          {
    return this.#tapes.has(id) || this.#db.get('SELECT 1 FROM tape WHERE id = @id', { id }) !== undefined;
  }

  #rowsOf     (id        , sql        )                 {
    let byTape = this.#read.get(sql);
    if (byTape === undefined) {
      const rows = this.#db.all                              (sql, { ...this.#run });
      byTape = Map.groupBy(rows, ({ tape_id }) => tape_id);
      this.#read.set(sql, byTape);
    }
    return (byTape.get(id) ?? none)                  ;
  }

  #fieldsOf({ g, about, ...row }            )                         {
    if (this.#fields.has(g)) return this.#fields.get(g);
    const { line, hash } =
      row.line === null && about !== undefined
        ? (this.#rowsOf            (about, selectLines).find((one) => one.g === g) ?? row)
        : row;
    const fields = line !== null && hashLine(line) === hash ? parsed(line) : undefined;
    this.#fields.set(g, fields);
    return fields;
  }
}

/** What is beside one tape. Several checks look at its lines and marks, and each would make them anew. */
class BesideTape                   {
           #rows                                      ;
           #fieldsOf                                              ;
  #lines                                ;
  #below                                  ;
  #marks                                ;

  constructor(
    rows                                      ,
    fieldsOf                                              ,
  ) {
    this.#rows = rows;
    this.#fieldsOf = fieldsOf;
  }

  get lines()                     {
    this.#lines ??= this.#rows                      (selectLines).map((row) => {
      const { g, type, peer_id, into, event_id, peer, seq, to_seq } = row;
      return { g, type, peer_id, into, event_id, peer, seq, to_seq, fields: this.#fieldsOf(row) };
    });
    return this.#lines;
  }

  get below()                       {
    this.#below ??= this.#rows                        (selectBelow).map((row) => {
      const { g, type, peer_id, into, ulid, reach } = row;
      return { g, type, peer_id, into, ulid, reach, fields: this.#fieldsOf(row) };
    });
    return this.#below;
  }

  get marks()                     {
    if (this.#marks !== undefined) return this.#marks;
    const rows = this.#rows         (selectMarks);
    // Most are found by both their key and their name.
    const bySeq = rows.length === 0 ? rows : [...new Map(rows.map((row) => [row.seq, row])).values()];
    this.#marks = bySeq.toSorted((a, b) => a.seq - b.seq);
    return this.#marks;
  }

  get marksAbove()                       {
    return this.#rows(selectMarksAbove);
  }

  get batches()                      {
    return this.#rows(selectBatches);
  }

  get isRunRecorded()          {
    return this.#rows(selectOpenRuns).length > 0;
  }

  get usage()                      {
    return this.#rows(selectUsage);
  }

  get touches()                    {
    return this.#rows(selectTouches);
  }

  get aliases()                      {
    return this.#rows(selectAliases);
  }

  get inbox()                  {
    return this.#rows(selectInbox);
  }

  get badChunks()                      {
    return this.#rows(selectBadChunks);
  }

  get stray()                  {
    return this.#rows                       (selectStrays)[0]?.seq;
  }

  get childBefore()                     {
    return this.#rows                         (selectChildrenBefore)[0]?.id;
  }
}

                      
                     
                                                                                           
                               
                           
                        
                          
 

const none                   = [];

const selectLines = `SELECT l.tape_id, l.g, l.type, l.peer_id, p.name AS "into", l.event_id, p.ulid AS peer, l.seq, l.to_seq,
    l.line, lower(hex(l.hash)) AS hash
  FROM lineage l LEFT JOIN tape p ON p.id = l.peer_id WHERE l.tape_id BETWEEN @first AND @last ORDER BY l.tape_id, l.g`;

/**
 * Lines of descendants that say something of a tape: those that name it, and those of forks that reach one of its own
 * positions.
 */
const selectBelow = `WITH RECURSIVE below(root, id, reach) AS (
    SELECT id, id, 9007199254740991 FROM tape WHERE id BETWEEN @first AND @last
    UNION SELECT b.root, c.id, min(b.reach, c.base_seq) FROM below b JOIN tape c ON c.parent_id = b.id AND c.id > b.id)
  SELECT b.root AS tape_id, l.g, l.type, l.peer_id, NULL AS "into", b.id AS about,
    CASE WHEN b.id NOT BETWEEN @first AND @last THEN l.line END AS line,
    CASE WHEN b.id NOT BETWEEN @first AND @last THEN lower(hex(l.hash)) END AS hash, b.reach, t.ulid
    FROM below b CROSS JOIN lineage l ON l.tape_id = b.id CROSS JOIN tape t ON t.id = b.id CROSS JOIN tape r ON r.id = b.root
    WHERE b.id <> b.root AND (l.peer_id = b.root OR (l.type = 'fork' AND b.reach > r.base_seq))`;

const selectMarksAbove = `WITH RECURSIVE above(child, id) AS (
    SELECT id, parent_id FROM tape WHERE id BETWEEN @first AND @last AND parent_id < id
    UNION SELECT a.child, t.parent_id FROM above a JOIN tape t ON t.id = a.id WHERE t.parent_id < t.id)
  SELECT a.child AS tape_id, t.name, e.seq, e.key, e.payload
    FROM above a CROSS JOIN tape c ON c.id = a.child CROSS JOIN tape t ON t.id = a.id
      CROSS JOIN entry e ON e.tape_id = a.id AND e.key >= 'merge:' || c.ulid || ':' AND e.key < 'merge:' || c.ulid || ';'`;

const selectMarks = `SELECT e.tape_id, e.seq, e.kind, e.mark, e.name, e.key, e.payload FROM tape t CROSS JOIN entry e
    WHERE t.id BETWEEN @first AND @last AND e.tape_id = t.id AND e.key >= 'merge:' AND e.key < 'merge;'
  UNION ALL
  SELECT e.tape_id, e.seq, e.kind, e.mark, e.name, e.key, e.payload FROM tape t CROSS JOIN entry e
    WHERE t.id BETWEEN @first AND @last AND e.tape_id = t.id AND e.name >= 'merge/' AND e.name < 'merge0' AND e.kind = 'anchor'`;

const selectStrays = `SELECT * FROM (
    SELECT id AS tape_id, coalesce((SELECT min(seq) FROM entry WHERE tape_id = t.id AND seq <= t.base_seq),
      (SELECT min(seq) FROM entry WHERE tape_id = t.id AND seq > t.head_seq)) AS seq
      FROM tape t WHERE id BETWEEN @first AND @last)
  WHERE seq IS NOT NULL`;

const selectBatches =
  'SELECT tape_id, from_seq, to_seq, calls FROM open_calls WHERE tape_id BETWEEN @first AND @last ORDER BY tape_id, from_seq';

const selectOpenRuns = 'SELECT tape_id FROM open_run WHERE tape_id BETWEEN @first AND @last';

const selectUsage = `SELECT tape_id, ${callsColumns} FROM usage WHERE tape_id BETWEEN @first AND @last
  ORDER BY tape_id, first_seq, model`;

const selectTouches = `SELECT tape_id, seq, count(*) AS n FROM touch WHERE tape_id BETWEEN @first AND @last
  GROUP BY tape_id, seq ORDER BY tape_id, seq`;

const selectAliases = `SELECT tape_id, realm, alias, name_key, reason, g FROM alias
  WHERE tape_id BETWEEN @first AND @last ORDER BY tape_id, alias`;

const selectInbox = `SELECT tape_id, ulid, body, queued_at FROM inbox WHERE tape_id BETWEEN @first AND @last
  ORDER BY tape_id, id`;

const selectBadChunks = `SELECT tape_id, run, idx FROM stream_chunk
  WHERE tape_id BETWEEN @first AND @last AND NOT json_valid(chunk) ORDER BY tape_id, run, idx`;

const selectChildrenBefore = `SELECT c.id AS tape_id, b.id FROM tape c CROSS JOIN tape b
  WHERE c.id BETWEEN @first AND @last AND b.parent_id = c.parent_id AND b.ordinal = c.ordinal - 1 AND b.ordinal IS NOT NULL`;
