import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';

/**
 * What an export writes into each record of another program's transcript, in the field `tapedeck`: the session, by its id,
 * and the hash of the entry that the record was made of. A record without `entry` says nothing of its own. `sum` is the SHA-256
 * of the content of the record's message: a record with other content says something of its own. The first record names the
 * sessions that the exported one was forked from, the nearest first: a home may have one of these alone.
 */
export interface ExportedMark {
  readonly session: string;
  readonly entry?: string;
  /** Where it was said, empty where that is not known: the record has the place in which the session continues. */
  readonly place?: JsonObject;
  readonly from?: readonly string[];
  /** The hashes of messages that were shown before it, and of which nothing was left to write. */
  readonly passed?: readonly string[];
  /** The state of a boundary, where the record has no place for all of it. */
  readonly state?: JsonObject;
}

/** The sum of what a message says. Programs write the JSON of a record anew, and leave the order of its fields. */
export function contentSum({ content = null }: JsonObject): string {
  return sha256(JSON.stringify(content));
}

/** The mark in a record; undefined for a record that no export wrote, or that was changed since. */
export function exportedMark({ tapedeck, message }: JsonObject): ExportedMark | undefined {
  if (!isObject(tapedeck) || typeof tapedeck.session !== 'string') return undefined;
  const { session, entry, place, from, passed, state, sum } = tapedeck;
  if (isObject(message) && sum !== contentSum(message)) return undefined;
  return {
    session,
    ...(typeof entry === 'string' && { entry }),
    ...(isObject(place) && { place }),
    ...(Array.isArray(from) && { from: from.map(String) }),
    ...(Array.isArray(passed) && { passed: passed.map(String) }),
    ...(isObject(state) && { state }),
  };
}
