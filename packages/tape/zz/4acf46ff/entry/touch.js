                                              
                                                       
import { isObject,           } from './json.js';

/** Something that an entry read or wrote: `state:key` of an anchor's state, or `file:path` of a tool call. */
                        
                        
                          
 

/** Names of anchors that the store itself writes: their states are no work of a session. */
const storeAnchors = /^(?:session|fork|merge)\/|^intention$/;

/**
 * Returns what an entry touches: the keys of an anchor's state, and the paths that the tool of a call
 * declared (`meta.paths`). A merge finds conflicts with one seek per touch. Pure.
 */
export function touchesOf(entry   
                           
                                     
                            
                                   
 )                   {
  const { kind, name, payload, meta } = entry;
  if (kind === 'tool-result' && isObject(meta?.paths)) {
    const { read, write } = meta.paths;
    const wrote = filesOf(write);
    return [
      ...wrote.map((what) => ({ what, wrote: true })),
      ...filesOf(read)
        .filter((what) => !wrote.includes(what))
        .map((what) => ({ what, wrote: false })),
    ];
  }
  if (kind !== 'anchor' || !isObject(payload) || !isObject(payload.state)) return [];
  if (name === undefined || storeAnchors.test(name)) return [];
  // JSON has no undefined values.
  return Object.entries(payload.state)
    .filter(([key, value]) => key !== 'summary' && value !== undefined)
    .map(([key]) => ({ what: `state:${key}`, wrote: true }));
}

function filesOf(paths                  )           {
  const texts = Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : [];
  return [...new Set(texts)].map((path) => `file:${path}`);
}

/** Records the touches of the entry at a position, or of the child `via` whose merge is there. */
export function saveTouches(
  db    ,
  tapeId        ,
  { seq, via }                                              ,
  touches                  ,
)       {
  for (const { what, wrote } of touches)
    db.run(
      `INSERT INTO touch (tape_id, what, seq, wrote, via) VALUES (@tapeId, @what, @seq, @wrote, @via)
         ON CONFLICT DO NOTHING`,
      { tapeId, what, seq, wrote: wrote ? 1 : 0, via: via ?? null },
    );
}
