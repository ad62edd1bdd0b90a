/**
 * Sessions: `session.ts` creates one and sets its lifecycle and task, `alias.ts` gives it another name, `stage.ts`
 * keeps an import invisible until it is whole, and `notify.ts` notifies the parent of a child's end. Imports `lineage`
 * and what lies below it.
 */
import { crashPoint } from '../crash-point.js';
                                               
import { genesisHash } from '../entry/hash.js';
                                                   
import { nameKey, parseName, quote } from '../entry/name.js';
import { TapeError } from '../errors.js';
import { recordLineage } from '../lineage/outbox.js';
import {              writeEntries } from '../tape/append.js';
import { findTape } from '../tape/find.js';
import { anchorExists } from '../tape/point.js';
import {
  assertStatus,
                 
  lifecycles,
               
            
  tapeById,
  tapeByName,
  tasks,
} from '../tape/tape.js';
import { tellParent, tellsParent } from './notify.js';

/** Properties of a new session. */
                              
                         
                          
                               
                                                                                   
                                 
 

/** Another name of a session. */
                        
                        
                                                                   
                          
 

/** What to change of a session. Everything that it names changes in one transaction. */
                                
                                 
                                                     
                       
                                        
                         
                                     
                           
 

                    
                        
                        
                            
                             
                                                                    
                                        
                                    
                            
                               
                         
                        
                                
                                             
                                      
                                           
                                        
                                          
                                   
 

/** Inserts a tape without own entries. A name that was used before gets its next incarnation. */
export function insertTape({ db, sources }        , realm        , ulid        , tape          )          {
  const now = sources.now();
  const id = db.insert(
    `INSERT INTO tape (ulid, realm, name, incarnation, kind, parent_id, spawn_key, request_hash, from_seq, from_anchor,
         floor_seq, base_seq, base_hash, head_seq, head_hash, settled_seq, lifecycle, task, title, ephemeral, deliver,
         spawn_call, created_at, updated_at, ordinal, name_key)
       VALUES (@ulid, @realm, @name,
         (SELECT coalesce(max(incarnation), 0) + 1 FROM tape WHERE realm = @realm AND name = @name), @kind, @parent, @spawnKey, @requestHash, @fromSeq, @fromAnchor,
         @floor, @base, @baseHash, @base, @baseHash, @base, @lifecycle, @task, @title, @ephemeral, @deliver,
         @spawnCall, @now, @now, @ordinal, @nameKey)`,
    {
      ulid,
      realm,
      name: tape.name,
      kind: tape.kind,
      parent: tape.parent?.id ?? null,
      spawnKey: tape.spawnKey ?? null,
      requestHash: tape.requestHash ?? null,
      fromSeq: tape.fromSeq ?? null,
      fromAnchor: tape.fromAnchor ?? null,
      floor: tape.floor,
      base: tape.base,
      baseHash: tape.baseHash,
      lifecycle: tape.lifecycle ?? 'active',
      task: tape.task ?? null,
      title: tape.title ?? null,
      ephemeral: tape.ephemeral === true ? 1 : 0,
      deliver: tape.deliver ?? null,
      spawnCall: tape.spawnCall ?? null,
      now,
      ordinal: tape.ordinal ?? null,
      nameKey: nameKey(tape.name),
    },
  );
  return tapeById(db, id);
}

/** The first entry of every root tape. */
function sessionStart(settings                        )        {
  const payload = { state: {}, ...(settings !== undefined && { settings }) };
  return { kind: 'anchor', mark: 'anchor', name: 'session/start', payload };
}

/**
 * Creates a root tape with its first entry, but without a lineage line: a staged tape gets that when it is
 * published.
 */
export function createRoot(
  writer        ,
  realm        ,
  name        ,
  { kind = 'session', title, ephemeral, settings }              = {},
  lifecycle            ,
)          {
  const ulid = writer.sources.newId();
  const tape = insertTape(writer, realm, ulid, {
    name,
    kind,
    floor: 0,
    base: 0,
    baseHash: genesisHash(ulid),
    title,
    ephemeral,
    ...(lifecycle !== undefined && { lifecycle }),
  });
  crashPoint('session/tape');
  const written = writeEntries(writer, tape, [sessionStart(settings)]);
  crashPoint('session/entries');
  return written.tape;
}

/**
 * Returns the session of a name, and creates it if it does not exist.
 * @throws TAPE_BAD_NAME; TAPE_EXISTS when the name is an alias, looks like another, or is a point of a session
 */
export function ensureSession(
  writer        ,
  realm        ,
  name        ,
  init              = {},
)                                      {
  parseName(name);
  const existing = tapeByName(writer.db, realm, name);
  // An unfinished import does not occupy its name: the new session is the next incarnation.
  if (existing !== undefined && existing.lifecycle !== 'staging') return { tape: existing, created: false };
  assertFree(writer, realm, name);
  const tape = createRoot(writer, realm, name, init);
  recordLineage(writer, tape, { type: 'session', childHead: tape.head_hash });
  crashPoint('session/lineage');
  return { tape, created: true };
}

/** Rejects a new name that is an alias, looks like another name, or is a point of an existing session. */
export function assertFree({ db }        , realm        , name        )       {
  if (isAlias(db, realm, name))
    throw new TapeError('TAPE_EXISTS', `cannot create ${quote(name)}: it is an alias of another session`);
  const near = lookAlike(db, realm, name);
  if (near !== undefined)
    throw new TapeError(
      'TAPE_EXISTS',
      `cannot create ${quote(name)}: it differs from '${near}' only by case or Unicode form`,
      { data: { name, session: near, near: [near] } },
    );
  const why = readsAsPoint(db, realm, name);
  if (why !== undefined) throw new TapeError('TAPE_EXISTS', `cannot create ${quote(name)}: ${why}`);
}

/** Says which point of an existing session a name reads as; undefined when it reads as none. */
export function readsAsPoint(db              , realm        , name        )                     {
  for (let at = name.lastIndexOf('@'); at > 0; at = name.lastIndexOf('@', at - 1)) {
    const tape = findTape(db, realm, name.slice(0, at));
    const point = name.slice(at + 1);
    if (tape === undefined) continue;
    if (/^\d+$/.test(point) || point === 'head' || anchorExists(db, tape, point))
      return `it reads as the point ${quote(point)} of session '${tape.name}'`;
  }
  return undefined;
}

/** Returns whether a name is an alias. */
export function isAlias(db              , realm        , name        )          {
  return db.get('SELECT 1 FROM alias WHERE realm = @realm AND alias = @name', { realm, name }) !== undefined;
}

/** Returns a name or alias in use that people would take for this one, though it is another. */
export function lookAlike(db              , realm        , name        )                     {
  return db.get                  (
    `SELECT name FROM tape WHERE realm = @realm AND name_key = @key AND name <> @name AND lifecycle <> 'staging'
       UNION ALL SELECT alias FROM alias WHERE realm = @realm AND name_key = @key AND alias <> @name LIMIT 1`,
    { realm, name, key: nameKey(name) },
  )?.name;
}

/**
 * Sets a session's lifecycle, with a lineage line; no change if it has that lifecycle.
 * @throws TAPE_BAD_STATUS
 */
export function setLifecycle(
  writer        ,
  tape         ,
  { lifecycle, epoch }                                                           ,
)          {
  const type = lifecycle === 'archived' ? 'archive' : 'status';
  return setState(writer, tape, { column: 'lifecycle', value: lifecycle, type, epoch });
}

/**
 * Sets a child's task state, with a lineage line, and notifies the parent of its end if the fork requested that. Only
 * runs call this.
 * @throws TAPE_BAD_STATUS
 */
export function setTask(
  writer        ,
  tape         ,
  { task, epoch }                                                 ,
)          {
  const changed = setState(writer, tape, { column: 'task', value: task, type: 'status', epoch });
  if (tape.task !== task && tellsParent(writer, changed, task)) tellParent(writer, changed, task);
  return changed;
}

                       
                                        
                                   
                                      
                                  
                         
 

function setState(writer        , tape         , { column, value, type, epoch }             )          {
  assertStatus(`set the ${column} of '${tape.name}' to`, value, column === 'task' ? tasks : lifecycles);
  if (tape[column] === value) return tape;
  // Raises the epoch, like every write without a lease, so that an owner whose lease expired can no longer
  // write.
  writer.db.run(`UPDATE tape SET ${column} = @value, epoch = @epoch, updated_at = @now WHERE id = @id`, {
    id: tape.id,
    value,
    epoch,
    now: writer.sources.now(),
  });
  crashPoint('status/row');
  const changed = tapeById(writer.db, tape.id);
  recordLineage(writer, changed, { type, childHead: changed.head_hash });
  crashPoint('status/lineage');
  return changed;
}
