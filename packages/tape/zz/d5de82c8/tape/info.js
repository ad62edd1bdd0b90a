                                             
import { hex } from '../entry/hash.js';
import { tapeName } from '../entry/name.js';
import { isUnfinished } from '../sqlite/schema.js';
                                              
import { getTape } from './find.js';
import {
  assertStatus,
                
                 
  lifecycles,
           
               
            
} from './tape.js';

/** The state of a session, without its entries. Times are milliseconds since the epoch. */
                              
                                 
                           
                                              
                      
                        
                        
                                
                       
                               
                           
                           
                             
                                                                               
                               
                             
                                                                               
                            
                                                        
                              
                          
                                                                      
                                      
                              
                                                                          
                      
                     
                     
                            
                                                                         
                        
                                                                                                  
                          
                             
                             
                                                                                                           
                                  
                                            
                                  
 

/** What a session has: its own entries, its children and the calls of its own entries. */
                                
                                                                      
                             
                                                            
                            
                                                                               
                                
                                  
                                                        
                          
 

/** The columns of `SessionInfo`. */
                    
          
          
           
          
                 
          
               
          
              
                 
                 
                 
               
             
                
           
               
               
              
              
                 
                
                
                     
     
                             
                           
                            
                                                           
                           
  

/** What the tables beside the row of a tape have of it. A run that saved a part of its answer is open. */
function besideTape(id        )         {
  return `(SELECT json_group_array(alias) FROM (SELECT alias FROM alias WHERE tape_id = ${id} ORDER BY alias)) AS aliases,
    EXISTS (SELECT 1 FROM open_run WHERE tape_id = ${id})
      OR EXISTS (SELECT 1 FROM stream_chunk WHERE tape_id = ${id}) AS open_run`;
}

/** Number of own entries up to which the messages among them are counted. */
const countedMax = 5_000;

/** Kind of a child that wrote a summary of its parent. */
export const summarizerKind = 'summarizer';

const children = `SELECT count(*) FROM tape c WHERE c.parent_id = t.id AND c.id > t.id AND c.kind <> '${summarizerKind}'
  AND c.lifecycle NOT IN ('staging', 'purged')`;

/** The counts of a session, each by its own index. */
const countsOf = `json_object(
    'messages', CASE WHEN t.head_seq - t.base_seq <= ${countedMax} THEN
      (SELECT count(*) FROM entry WHERE tape_id = t.id AND kind = 'message') END,
    'children', (${children}),
    'openChildren', (${children} AND c.delivery IS NULL AND c.lifecycle = 'active'),
    'mergedChildren', (${children} AND c.delivery = 'merged'),
    'tokens', (SELECT coalesce(sum(input + output), 0) FROM usage WHERE tape_id = t.id))`;

const infoColumns = ` t.ulid, t.realm, t.name, t.incarnation, t.kind, t.lifecycle, t.task, t.delivery,
  p.name AS parent_name, p.ulid AS parent_ulid, t.from_anchor, t.merged_at, t.deliver, t.spawn_call, t.title, t.ephemeral,
  t.floor_seq, t.base_seq, t.head_seq, t.settled_seq, t.created_at, t.updated_at, t.last_message_at, lower(hex(t.head_hash)) AS head_hash,
  ${besideTape('t.id')}`;

function selectInfo({ counts }              )         {
  return `SELECT ${infoColumns}${counts === true ? `, ${countsOf} AS counts` : ''}
    FROM tape t LEFT JOIN tape p ON p.id = t.parent_id AND p.id < t.id`;
}

export function infoOf(db    , row         )              {
  const beside = db.get                                       (`SELECT ${besideTape('@id')}`, { id: row.id });
  return toInfo({ ...row, head_hash: hex(row.head_hash), aliases: '[]', open_run: 0, ...beside });
}

function toInfo(row         )              {
  return {
    session: row.name,
    id: row.ulid,
    tape: tapeName(row.realm, row.name, row.incarnation),
    kind: row.kind,
    lifecycle: row.lifecycle === 'staging' ? 'active' : row.lifecycle,
    ...(row.task !== null && { task: row.task }),
    ...(row.delivery !== null && { delivery: row.delivery }),
    ...(row.parent_name !== null && { parent: row.parent_name }),
    ...(row.parent_ulid !== null && { parentId: row.parent_ulid }),
    ...(row.from_anchor !== null && { fromAnchor: row.from_anchor }),
    ...(row.merged_at !== null && { mergedAt: row.merged_at }),
    ...(row.deliver !== null && { deliver: row.deliver }),
    ...(row.spawn_call !== null && { spawnCall: row.spawn_call }),
    ...(row.title !== null && { title: row.title }),
    aliases: JSON.parse(row.aliases)            ,
    ephemeral: row.ephemeral === 1,
    floor: row.floor_seq,
    base: row.base_seq,
    head: row.head_seq,
    headHash: row.head_hash,
    settled: row.settled_seq,
    ...(row.open_run === 1 && { openRun: true          }),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    ...(row.last_message_at !== null && { lastMessageAt: row.last_message_at }),
    ...(row.counts !== undefined && { counts: countsIn(row.counts) }),
  };
}

function countsIn(text        )                {
  const { messages, ...counts } = JSON.parse(text)                                                        ;
  return { ...(messages !== null && { messages }), ...counts };
}

/** Selects sessions. */
                               
                         
                                 
                                           
                        
                                        
                           
                                                                                                                            
                           
     
                                                                                                                       
                                                                    
     
                          
                                                                                  
                        
                                                                                   
                       
                                                                                                                 
                                
     
                                                                                                                      
          
     
                             
     
                                                                                                                      
           
     
                          
                                                            
                         
                                                                                             
                               
                                                                                   
                              
                          
                                     
                            
 

/** When something was last said in a session: so an import has its place by the times of its source. */
const spokenAt = 'coalesce(t.last_message_at, t.created_at)';

/** All sessions below one. */
const below = `WITH RECURSIVE below (id) AS (
    SELECT id FROM tape WHERE parent_id = @under AND id > @under
    UNION ALL SELECT c.id FROM tape c JOIN below ON c.parent_id = below.id AND c.id > below.id
  ) SELECT id FROM below`;

const unfinished = `SELECT id FROM tape WHERE parent_id > 0 AND ${isUnfinished}`;

/** The unfinished ones, found from below: there are few of them, however many sessions have ended. */
const unfinishedBelow = `WITH RECURSIVE up (id, above) AS (
    SELECT id, parent_id FROM tape WHERE parent_id > 0 AND ${isUnfinished}
    UNION ALL SELECT up.id, p.parent_id FROM up JOIN tape p ON p.id = up.above
      WHERE up.above <> @under AND p.parent_id < p.id
  ) SELECT id FROM up WHERE above = @under`;

const pending = `SELECT tape_id FROM open_run UNION SELECT tape_id FROM stream_chunk UNION SELECT tape_id FROM lease
  UNION SELECT tape_id FROM inbox UNION SELECT tape_id FROM open_calls WHERE tape_id > 0 AND to_seq IS NULL
  UNION SELECT id FROM tape WHERE task = 'running'`;

/**
 * Those of names and aliases from one text on, and before another. Where all of them are wanted up to a limit, it ends the
 * search: thousands of names can begin alike.
 */
function prefixed({ all, limit, kind, since, lifecycle, roots, parent, under, after }              )         {
  const others = [kind, since, lifecycle, roots, parent, under, after];
  const isWhole = all === true && limit !== undefined && others.every((one) => one === undefined);
  const end = isWhole ? 'LIMIT @limit' : '';
  return `SELECT id FROM (SELECT id FROM tape
      WHERE realm = @realm AND name >= @prefix AND name < @prefixEnd AND lifecycle NOT IN ('staging', 'purged')
      ORDER BY name ${end})
    UNION SELECT tape_id FROM (SELECT tape_id FROM alias
      WHERE realm = @realm AND alias >= @prefix AND alias < @prefixEnd ORDER BY alias ${end})`;
}

/** What selects the sessions of a query beside the columns of their rows. */
function selected(query              )         {
  const { prefix, ...others } = query;
  if (prefix !== undefined) return `AND t.id IN (${prefixed(query)}) ${selected(others)}`;
  if (query.pending === true) return `AND t.id IN (${pending}) ${selected({ ...query, pending: false })}`;
  if (query.under !== undefined)
    return `AND t.id IN (${query.unfinished === true ? unfinishedBelow : below})`;
  if (query.unfinished !== true) return '';
  return `AND t.id IN (${unfinished}${query.parent === undefined ? '' : ' AND parent_id = @parent'})`;
}

/**
 * Lists sessions, the one with the newest message first (of a session without one, its creation counts); with
 * `parent` or `after`, in order of creation; with `leftFrom`, in that of the positions where they left.
 * @throws TAPE_NO_SESSION, TAPE_BAD_STATUS
 */
export function listTapes(db    , realm        , query               = {})                {
  if (query.lifecycle !== undefined) assertStatus('list sessions of lifecycle', query.lifecycle, lifecycles);
  const idOf = (ref                        ) => (ref == null ? null : getTape(db, realm, ref).id);
  const parent = idOf(query.parent);
  const after = idOf(query.after);
  const under = idOf(query.under);
  // With a plus SQLite uses no index for a column: it looks up the selected ids instead.
  const isSelected = query.unfinished === true || query.pending === true || query.prefix !== undefined;
  const t = isSelected ? '+t' : 't';
  const isOfRealm = query.allRealms !== true && parent === null && under === null;
  const where = `${isOfRealm ? `${t}.realm = @realm AND ` : ''}t.lifecycle NOT IN ('staging', 'purged')
       AND (@all = 1 OR @lifecycle IS NOT NULL OR (t.lifecycle NOT IN ('archived', 'destroyed') AND t.ephemeral = 0))
       ${query.since === undefined ? '' : `AND ${spokenAt} >= @since`}
       AND (@kind IS NULL OR t.kind = @kind) AND (@lifecycle IS NULL OR t.lifecycle = @lifecycle)
       ${query.roots === true ? `AND ${t}.parent_id IS NULL` : ''}
       ${parent === null ? '' : `AND ${t}.parent_id = @parent AND @parent < t.id`} ${after === null ? '' : 'AND t.id > @after'}
       ${query.leftFrom === undefined ? '' : 'AND t.base_seq >= @leftFrom'}
       ${query.key === undefined ? '' : 'AND t.spawn_key = @key'} ${selected(query)}`;
  const isByPlace = parent !== null && query.leftFrom !== undefined;
  const isByCreation = parent !== null || query.after !== undefined;
  const order = isByPlace
    ? 't.base_seq, t.id'
    : isByCreation
      ? 't.id'
      : `${spokenAt} DESC, t.updated_at DESC, t.id DESC`;
  // Sorting all children, SQLite would first look up what the tables beside their rows have.
  const which = isByPlace
    ? `t.id IN (SELECT t.id FROM tape t WHERE ${where} ORDER BY ${order} LIMIT @limit)`
    : where;
  const rows = db.all         (`${selectInfo(query)} WHERE ${which} ORDER BY ${order} LIMIT @limit`, {
    ...((isOfRealm || query.prefix !== undefined) && { realm }),
    // No character of a name is greater than the last one of Unicode.
    ...(query.prefix !== undefined && { prefix: query.prefix, prefixEnd: `${query.prefix}\u{10ffff}` }),
    all: query.all === true ? 1 : 0,
    kind: query.kind ?? null,
    lifecycle: query.lifecycle ?? null,
    limit: query.limit ?? -1,
    ...(parent !== null && { parent }),
    ...(query.leftFrom !== undefined && { leftFrom: query.leftFrom }),
    ...(after !== null && { after }),
    ...(query.key !== undefined && { key: query.key }),
    ...(under !== null && { under }),
    ...(query.since !== undefined && { since: query.since }),
  });
  return rows.map(toInfo);
}

/** Returns whether a session only records how a summary was made. It has no result to merge. */
export function isSummarizer({ parentId, kind }                                        )          {
  return parentId !== undefined && kind === summarizerKind;
}
