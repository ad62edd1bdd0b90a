                                                    
import { isObject,                            } from '../entry/json.js';
import { TapeError } from '../errors.js';
                                              
import { readEntries } from '../tape/read.js';
import {               tapeById } from '../tape/tape.js';
import { remakeOf } from '../view/manifest.js';
import { viewVersion } from '../view/select.js';
import { viewEntries } from '../view/source.js';
import { view } from '../view/view.js';
import {               problemsOf } from './problem.js';
import {             sizeOf, united, without } from './ranges.js';

/** A recorded view, and the tape that it is of. */
                    
                    
                                
                       
                                                                              
                            
 

/** Collects the positions of a tape's entries that record a view. */
export class ViewsOnTape {
           places        = [];

  /** Receives the entries of the tape, in order. */
  saw({ seq, kind, name, key, meta, payload }           )       {
    const isRecord =
      (kind === 'event' &&
        name !== null &&
        recordingEvents.has(name) &&
        payload?.includes('"view":{') === true) ||
      (kind === 'anchor' && key?.startsWith('merge:') === true && payload?.includes('"asked":{') === true) ||
      meta?.includes('"view":{') === true;
    if (isRecord) this.places.push(seq);
  }
}

/** The columns of an entry that tell whether it records a view. */
                     
                    
                        
                               
                              
                               
                                  
 

const recordingEvents                      = new Set(['run/retrying', 'run/error', 'summary/asked']);

/**
 * Makes the views again that entries of a tape recorded, and compares their digests. Views overlap: newest first,
 * those are made that add mostly new positions, and others as long as all of them together have not more than four
 * times the entries of the tape, and 2000.
 */
export function* verifyViews(
  db    ,
  tape         ,
  { places }                             ,
)                     {
  let left = 2000 + 4 * (tape.head_seq - tape.base_seq);
  const covered = new Map                          ();
  for (const seq of places.toReversed())
    for (const recorded of recordedAt(db, tape, seq)) {
      const within = rangesIn(recorded.manifest);
      const before = covered.get(recorded.of.id) ?? [];
      const size = sizeOf(within);
      const isNew = sizeOf(without(within, before)) * 2 > size;
      if (!isNew && size > left) continue;
      if (!isNew) left -= size;
      covered.set(recorded.of.id, united(before, within));
      if (isContradicted(db, recorded))
        yield problemsOf(tape.name)(
          'view-contradicted',
          seq,
          `${tape.name}@${seq} recorded a view of '${recorded.of.name}' that its entries do not give`,
        );
    }
}

function recordedAt(db    , tape         , seq     )             {
  const [entry] = readEntries(db, tape, { from: seq, to: seq, own: true });
  if (entry === undefined) return [];
  const payload = isObject(entry.payload) ? entry.payload : {};
  const state = isObject(payload.state) ? payload.state : {};
  const parent = tape.parent_id === null ? undefined : tapeById(db, tape.parent_id);
  const child = isObject(state.asked) ? tapeByUlid(db, state.child) : undefined;
  const recorded = (manifest                  , of                     , ownOnly = false)             =>
    isObject(manifest) && of !== undefined ? [{ seq, manifest, of, ownOnly }] : [];
  return [
    ...recorded(entry.meta.view, tape),
    ...recorded(payload.view, entry.name === 'summary/asked' ? parent : tape),
    ...recorded(state.asked, child, true),
  ];
}

/**
 * Whether the entries of a tape do not give a recorded view. Views of other rules, or of erased entries, are not
 * known.
 */
function isContradicted(db    , { manifest, of, ownOnly }          )          {
  const remake = remakeOf(manifest);
  if (remake === undefined || manifest.version !== viewVersion) return false;
  const { policy, target, at } = remake;
  if (at > of.head_seq) return true;
  try {
    const entries                   = ownOnly
      ? [...readEntries(db, of, { own: true, to: at })]
      : [...viewEntries(db, { ...of, head_seq: at }, policy)];
    if (entries.some(({ payload }) => payload === null)) return false;
    return view(entries, { policy, target }).digest !== manifest.digest;
  } catch (error) {
    // An anchor that the view began at is gone.
    if (error instanceof TapeError && error.code === 'TAPE_NO_ANCHOR') return true;
    throw error;
  }
}

function rangesIn({ in: within }            )                   {
  if (!Array.isArray(within)) return [];
  return within.flatMap((range      ) => {
    const [from, to] = Array.isArray(range) ? range : [];
    return typeof from === 'number' && typeof to === 'number' && from <= to ? [[from, to]         ] : [];
  });
}

function tapeByUlid(db    , ulid                  )                      {
  if (typeof ulid !== 'string') return undefined;
  const row = db.get                ('SELECT id FROM tape WHERE ulid = @ulid', { ulid });
  return row === undefined ? undefined : tapeById(db, row.id);
}
