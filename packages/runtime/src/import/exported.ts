import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * What an export writes into each record of another program's transcript, in the field `tapedeck`: the session, by its id,
 * and the hash of the entry that the record was made of. A record without `entry` says nothing of its own.
 */
export interface ExportedMark {
  readonly session: string;
  readonly entry?: string;
  /** The state of a boundary, where the record has no place for all of it. */
  readonly state?: JsonObject;
}

/** The mark in a record; undefined for a record that no export wrote. */
export function exportedMark({ tapedeck }: JsonObject): ExportedMark | undefined {
  if (!isObject(tapedeck) || typeof tapedeck.session !== 'string') return undefined;
  const { session, entry, state } = tapedeck;
  return {
    session,
    ...(typeof entry === 'string' && { entry }),
    ...(isObject(state) && { state }),
  };
}
