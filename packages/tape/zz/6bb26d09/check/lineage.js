import { hex } from '../entry/hash.js';
                                                   
import { parsed } from '../entry/parsed.js';
import { firstLinePrev, hashLine } from '../lineage/line.js';
                                              
                                               
                                          
import { LinesBySession } from './lines.js';
                                            

                      
                     
                            
                        
                           
                               
                               
                                    
                              
                                 
                        
                            
 

const pageRows = 512;

/**
 * Verifies the hash chain of the lineage, and the columns beside each line against the line, and lines about one
 * session against each other.
 */
export function* verifyLineage(db    )                     {
  const told = new LinesBySession((g) => lineAt(db, g));
  let prevs = [firstLinePrev];
  let expected = 1;
  // A row that another program numbered 0 or below is read too.
  for (let after = -Infinity; ; ) {
    const rows = db.all            (
      `SELECT l.g, l.event_id, l.type, l.tape_id, t.ulid, p.ulid AS peer, p.name AS peer_name, l.seq, l.to_seq, l.line, l.hash
         FROM lineage l LEFT JOIN tape t ON t.id = l.tape_id LEFT JOIN tape p ON p.id = l.peer_id
         WHERE l.g > @after ORDER BY l.g LIMIT @limit`,
      { after, limit: pageRows },
    );
    for (const row of rows) {
      const { g, line, hash, tape_id: tape, peer_name: into } = row;
      const hashed = hashLine(line);
      const fields = parsed(line);
      const matches = matchesColumns(row, fields);
      const isMissing = g !== expected;
      const isOwn = hashed === hex(hash);
      const follows = isOwn && prevs.some((prev) => line.includes(`"prev":"${prev}"`));
      if (isMissing) {
        told.missing();
        yield broken(
          g > expected ? `lineage line ${expected} is missing` : `lineage line ${g} is not a line's number`,
        );
      } else if (!follows)
        yield broken(`lineage line ${g} does not follow from the line before it, or was changed`);
      else if (!matches) yield broken(`lineage line ${g} differs from the columns beside it`);
      if (isOwn && (isMissing || follows) && matches)
        yield* contradictions(g, told.compare(fields, { g, tape, into }));
      else told.skip(tape);
      prevs = [hashed, hex(hash)];
      expected = g + 1;
    }
    if (rows.length < pageRows) return;
    after = rows.at(-1)?.g ?? after;
  }
}

function broken(message        )          {
  return { code: 'lineage-broken', session: null, seq: null, message };
}

function* contradictions(g        , fields                   )                     {
  if (fields.length > 0)
    yield broken(`lineage line ${g} contradicts itself, or an earlier line, by its ${fields.join(', ')}`);
}

function lineAt(db    , g        )             {
  const row = db.get                  ('SELECT line FROM lineage WHERE g = @g', { g });
  return parsed(row?.line ?? null);
}

function matchesColumns(
  { event_id, type, ulid, peer, seq, to_seq }            ,
  recorded            ,
)          {
  const to = Array.isArray(recorded.range) ? recorded.range[1] : null;
  return (
    recorded.event_id === event_id &&
    recorded.type === type &&
    recorded.session === ulid &&
    (recorded.into ?? recorded.parent ?? null) === peer &&
    (recorded.seq ?? null) === seq &&
    to === to_seq
  );
}

/** Yields the lines about a tape that do not have their hash, or contradict each other. */
export function* verifyLines(tape         , { lines }        )                     {
  const told = new LinesBySession((g) => lines.find((line) => line.g === g)?.fields ?? {});
  for (const { g, fields, into } of lines)
    if (fields !== undefined) yield* contradictions(g, told.compare(fields, { g, tape: tape.id, into }));
    else {
      told.skip(tape.id);
      yield broken(`lineage line ${g}, of '${tape.name}', was changed`);
    }
}
