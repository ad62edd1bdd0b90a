import type { JsonObject } from '@tapedeck/tape';
import type { ExportedMark } from '../../plan/exported.ts';
import type { Results, Traits } from './traits.ts';

/**
 * A record of a Claude Code transcript: the fields that determine its place in the conversation, and the
 * whole record.
 */
export interface CodeRecord {
  /** 1, 2, 3 … in file order. */
  readonly ordinal: number;
  /** Whether it is in the chain: not so side records and repetitions of a uuid. */
  readonly isChained: boolean;
  /** Its id in the chain. */
  readonly id: string | undefined;
  /** The id of its predecessor, whether or not the file contains it, and the ordinal of that if it does. */
  readonly parent: string | undefined;
  readonly parentAt: number | undefined;
  /** The preceding main record, perhaps one before the first that is given. */
  readonly before: string | undefined;
  readonly beforeAt: number | undefined;
  /**
   * The key of its entry, from its uuid or else its ordinal, so that it stays the same when the file grows.
   */
  readonly key: string;
  /** Its uuid; that of the record of which it is a copy, if it has another one. */
  readonly uuid: string | undefined;
  /** Whether a record before it has the same. */
  readonly isRepeat: boolean;
  readonly type: string;
  readonly sidechain: boolean;
  /** What an export of this project wrote into it. */
  readonly mark: ExportedMark | undefined;
  readonly bytes: number;
  /** What is asked of it more than once. */
  readonly traits: Traits;
  /** What the records of its message have in common. */
  readonly message: string | undefined;
  readonly results: Results | undefined;
  /** The calls that it makes. */
  readonly calls: readonly string[] | undefined;
  /** Its line, and the bytes of the file before that. */
  readonly line: number;
  readonly offset: number;
  /** The record to which it points as the end of the conversation, or of what it sums up. */
  readonly leaf: string | undefined;
  /** Whether `raw` is read again each time. */
  readonly isAway: boolean;
  readonly raw: JsonObject;
  /** Of a record that was nested in another one, what that says of where it was written. */
  readonly around: JsonObject | undefined;
}

/** What is before the first of some records. */
export interface RecordStart {
  /** How many records. */
  readonly ordinal: number;
  /** The last main record. */
  readonly before: string | undefined;
}
