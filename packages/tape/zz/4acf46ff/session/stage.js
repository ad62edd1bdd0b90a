import { crashPoint } from '../crash-point.js';
                                               
import { parseName, quote } from '../entry/name.js';
import { TapeError } from '../errors.js';
import { recordLineage } from '../lineage/outbox.js';
import {              writeEntries } from '../tape/append.js';
import {               tapeById, tapeByName } from '../tape/tape.js';
import { assertFree, createRoot,                  } from './session.js';

/** Properties of a staged session. */
                                                
     
                                                                                                             
          
     
                                    
 

/**
 * Creates a staged session: written in many transactions, invisible until one last transaction publishes it
 * with its lineage, so that an import is complete or absent. Staging the same name again continues after a
 * crash; the keys of the entries prevent duplicates.
 * @throws TAPE_BAD_NAME, TAPE_EXISTS
 */
export function stageTape(writer        , realm        , name        , init            = {})          {
  parseName(name);
  const existing = tapeByName(writer.db, realm, name);
  if (existing?.lifecycle === 'staging' && isBegunBy(writer, existing, init.keys)) return existing;
  if (existing !== undefined && existing.lifecycle !== 'staging')
    throw new TapeError('TAPE_EXISTS', `cannot import into ${quote(name)}: the session exists`, {
      data: { session: name },
    });
  assertFree(writer, realm, name);
  return createRoot(writer, realm, name, init, 'staging');
}

/**
 * Returns whether all entries of a staged tape belong to this import. Another import's remains are left
 * alone.
 */
function isBegunBy({ db }        , staged         , keys                               )          {
  if (keys === undefined) return true;
  const known = new Set(keys.map((key) => `u:${key}`));
  return db
    .all                 ('SELECT key FROM entry WHERE tape_id = @id AND key IS NOT NULL', { id: staged.id })
    .every(({ key }) => known.has(key));
}

/** Returns a staged session by its ULID. */
function getStaged({ db }        , id        )          {
  const row = db.get                (`SELECT id FROM tape WHERE ulid = @id AND lifecycle = 'staging'`, {
    id,
  });
  if (row === undefined)
    throw new TapeError('TAPE_NO_SESSION', `cannot find staged session ${quote(id)}`, {
      data: { session: id },
    });
  return tapeById(db, row.id);
}

export function appendStaged(
  writer        ,
  id        ,
  drafts                  ,
)                                  {
  return writeEntries(writer, getStaged(writer, id), drafts);
}

/**
 * Makes staged sessions visible, each with its lineage line, in the caller's transaction. Publishing again
 * changes nothing.
 */
export function publishTapes(writer        , ids                   )            {
  return ids.map((id) => {
    const published = writer.db.get                (
      `SELECT id FROM tape WHERE ulid = @id AND lifecycle <> 'staging'`,
      { id },
    );
    if (published !== undefined) return tapeById(writer.db, published.id);
    const staged = getStaged(writer, id);
    if (tapeByName(writer.db, staged.realm, staged.name)?.id !== staged.id)
      throw new TapeError(
        'TAPE_EXISTS',
        `cannot publish ${quote(staged.name)}: another session has taken the name`,
        {
          data: { session: staged.name },
        },
      );
    writer.db.run(`UPDATE tape SET lifecycle = 'active' WHERE id = @id`, { id: staged.id });
    crashPoint('publish/visible');
    const tape = tapeById(writer.db, staged.id);
    recordLineage(writer, tape, { type: 'session', childHead: tape.head_hash });
    crashPoint('publish/lineage');
    return tape;
  });
}
