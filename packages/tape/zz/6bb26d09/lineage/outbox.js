import { crashPoint } from '../crash-point.js';
                                             
import { hex, sha256 } from '../entry/hash.js';
import { isoTime } from '../entry/iso-time.js';
import { encodeJson } from '../entry/json.js';
import { tapeName } from '../entry/name.js';
import { TapeError } from '../errors.js';
                                              
                                                
                                               
import {
  encodeLine,
  firstLinePrev,
  hashLine,
               
                   
                   
                     
  rowDigest,
} from './line.js';

/** What a fork is for. Stored, and rendered as the preamble that the child's model receives. */
                            
                              
                                   
                                                                                                          
                                      
 

/** The facts of an act that the session's row does not have. */
                               
                             
                                                          
                          
                                                          
                     
                                              
                                 
                                                                                                  
                                
                                   
                                  
                          
                           
 

/** Adds the lineage line of an act to the outbox, in the act's transaction; returns the line's number. */
export function recordLineage({ db, sources }        , tape         , event              )         {
  const last = db.get                                 (
    'SELECT g, hash FROM lineage WHERE g = (SELECT max(g) FROM lineage)',
  );
  const g = (last?.g ?? 0) + 1;
  const eventId = sources.newId();
  const line              = {
    v: 1,
    g,
    event_id: eventId,
    type: event.type,
    session_id: tape.name,
    parent_session_id: tape.parent_name,
    from_anchor: tape.from_anchor,
    created_at: isoTime(tape.created_at),
    status: graphStatus(tape),
    at: new Date(sources.now()).toISOString(),
    session: tape.ulid,
    parent: tape.parent_ulid,
    tape: tapeName(tape.realm, tape.name, tape.incarnation),
    kind: tape.kind,
    ...((event.type === 'session' || event.type === 'fork') && { row: rowDigest(tape) }),
    ...(event.type === 'fork' && {
      base: tape.base_seq,
      ...(tape.spawn_key !== null && { spawn_key: tape.spawn_key }),
    }),
    ...(event.range !== undefined && { range: event.range }),
    ...(event.intention !== undefined && { intention: lineIntention(event.intention) }),
    ...(event.into !== undefined && { into: event.into.ulid, into_session_id: event.into.name }),
    ...(event.seq !== undefined && { seq: event.seq }),
    ...(event.textVersion !== undefined && { text_version: event.textVersion }),
    ...(event.parentHead !== undefined && { parent_head: hex(event.parentHead) }),
    ...(event.childHead !== undefined && { child_head: hex(event.childHead) }),
    ...(event.alias !== undefined && { alias: event.alias }),
    ...(event.reason !== undefined && { reason: event.reason }),
    lifecycle: tape.lifecycle,
    ...(tape.task !== null && { task: tape.task }),
    ...(tape.delivery !== null && { delivery: tape.delivery }),
    prev: last === undefined ? firstLinePrev : hex(last.hash),
  };
  const text = encodeLine(line);
  db.run(
    `INSERT INTO lineage (g, event_id, type, tape_id, peer_id, seq, to_seq, line, hash)
       VALUES (@g, @eventId, @type, @tape, @peer, @seq, @to, @text, @hash)`,
    {
      g,
      eventId,
      type: event.type,
      tape: tape.id,
      peer: event.into?.id ?? tape.parent_id,
      seq: event.seq ?? null,
      to: event.range?.[1] ?? null,
      text,
      hash: Buffer.from(hashLine(text), 'hex'),
    },
  );
  crashPoint('lineage/row');
  return g;
}

/** Returns what a line has of a text of an intention. */
export function cutField(text        )         {
  return text.slice(0, 200).toWellFormed();
}

function lineIntention(intention           )                {
  return {
    ...(intention.nextSteps !== undefined && { next_steps: cutField(intention.nextSteps) }),
    ...(intention.contextSummary !== undefined && { context_summary: cutField(intention.contextSummary) }),
    ...(intention.triggerOnComplete !== undefined && {
      trigger_on_complete: cutField(intention.triggerOnComplete),
    }),
    digest: sha256(encodeJson(intention, 'an intention')),
  };
}

/** What an update of the graph file found, other than lines that were missing. */
                              
                                                                                
                          
                                                                                                      
                          
                                                                
                          
 

/**
 * Appends the missing lines to the graph file, under the write lock, so in one process at a time. The file's
 * tail says which line is next, so each line is written exactly once, whatever process crashed. A file with a
 * line that this database did not write is set aside, and all lines go to a new one: the file is a projection. All
 * lines are compared when the file is not as the last update left it, else its tail alone.
 * @throws GRAPH_DIVERGED when the database has no line yet and the file has records: they are all that is left of
 * another database, which this one would replace
 */
export function drainOutbox(db    , journal         )              {
  const waiting = db.get               ('SELECT max(g) AS g FROM lineage')?.g ?? 0;
  const seen = journal.tail();
  if (seen.g === waiting && !seen.torn && matches(db, seen) && isAsLeft(db, journal)) return {};
  // What is remembered of the file only saves a comparison, so it need not wait for the disk.
  return db.writeBehind(() => {
    crashPoint('outbox/locked');
    const tail = journal.tail();
    if (matches(db, tail) && (isAsLeft(db, journal) || holdsLines(db, journal))) {
      appendMissing(db, journal, tail);
      rememberFile(db, journal);
      return {};
    }
    if (waiting === 0 && tail.g > 0) throw lostDatabase(tail.g);
    const aside = setAside(journal);
    if (aside === undefined) return { blocked: true };
    // A crash here leaves no file: the next open writes all lines.
    try {
      appendMissing(db, journal, journal.tail());
      rememberFile(db, journal);
      return { aside };
    } catch (error) {
      if (!isIo(error)) throw error;
      return { aside, lagging: true };
    }
  });
}

/** Whether the graph file is as the last update left it. */
function isAsLeft(db    , journal         )          {
  const stamp = journal.stamp?.();
  if (stamp === undefined) return true;
  return db.get                   (`SELECT value FROM home WHERE key = 'graph'`)?.value === stamp;
}

function rememberFile(db    , journal         )       {
  const stamp = journal.stamp?.();
  if (stamp === undefined) return;
  db.run(
    `INSERT INTO home (key, value) VALUES ('graph', @stamp) ON CONFLICT DO UPDATE SET value = excluded.value
       WHERE value <> excluded.value`,
    { stamp },
  );
}

/** Whether every record of the graph file is the line of its number. */
function holdsLines(db    , journal         )          {
  return journal.holds?.(linesAfter(db, 0)) ?? true;
}

function* linesAfter(db    , first        )                    {
  for (let after = first; ; ) {
    const rows = pageAfter(db, after);
    for (const { line } of rows) yield line;
    if (rows.length < pageLines) return;
    after = rows.at(-1)?.g ?? after;
  }
}

const pageLines = 1000;

function pageAfter(db    , after        )                                                           {
  return db.all('SELECT g, line FROM lineage WHERE g > @after ORDER BY g LIMIT @limit', {
    after,
    limit: pageLines,
  });
}

function appendMissing(db    , journal         , tail                             )       {
  for (let after = tail.g; ; ) {
    const rows = pageAfter(db, after);
    if (rows.length > 0 || (tail.torn && after === tail.g)) {
      crashPoint('outbox/before-append');
      journal.append(rows.map((row) => row.line));
      crashPoint('outbox/appended');
    }
    if (rows.length < pageLines) return;
    after = rows.at(-1)?.g ?? after;
  }
}

/**
 * Refuses to begin a database beside a graph file that has records. A file that cannot be read says nothing.
 * @throws GRAPH_DIVERGED
 */
export function assertNoRecords(journal         )       {
  const g = recordsOf(journal);
  if (g > 0) throw lostDatabase(g);
}

function recordsOf(journal         )         {
  try {
    return journal.tail().g;
  } catch (error) {
    if (isIo(error)) return 0;
    throw error;
  }
}

function lostDatabase(g        )            {
  return new TapeError(
    'GRAPH_DIVERGED',
    `cannot begin a new database: the graph file beside it has ${g} lines of another one`,
    { data: { g } },
  );
}

/** Returns the new name of the file; undefined when it cannot be moved, as in a directory that is read-only. */
function setAside(journal         )                     {
  try {
    return journal.setAside?.();
  } catch (error) {
    if (isIo(error)) return undefined;
    throw error;
  }
}

/** Whether the journal could not read or write its file. */
function isIo(error         )          {
  return (error                      ).code === 'GRAPH_IO';
}

function matches(db    , tail                                               )          {
  if (tail.g === 0) return tail.hash === firstLinePrev;
  const row = db.get                      ('SELECT hash FROM lineage WHERE g = @g', { g: tail.g });
  return row !== undefined && hex(row.hash) === tail.hash;
}

/** The status in the graph: delivery, else task, else lifecycle. */
function graphStatus(row                                                  )         {
  return row.delivery ?? row.task ?? row.lifecycle;
}
