import type { Draft } from '@tapedeck/tape';

/** Counts of what was read. */
export interface TranscriptCounts {
  /** JSON objects in the file. */
  readonly records: number;
  /** User and assistant messages. */
  readonly messages: number;
  /** Records that are no part of a conversation: progress, side records. */
  readonly offPath: number;
  /** Tool calls without a result, which get the result `interrupted`. */
  readonly repaired: number;
  /** Boundaries at which the agent compacted the conversation. */
  readonly compactions: number;
  /** Messages built from several records. */
  readonly merged: number;
  /** Results moved to their message past another message in the file. */
  readonly reordered: number;
  /** Records whose parent is missing from the file or repeats. */
  readonly dangling: number;
  /** Lines without a record, and records too large to keep verbatim. */
  readonly skipped: number;
  /** Lines that contain several records without a newline between them. */
  readonly glued: number;
  /** 1 if an incomplete last line was left out. */
  readonly truncated: number;
  /** Records that were taken, though they are of another format, or say something that cannot be. */
  readonly irregular: number;
}

/** A transcript of a format that has one conversation in each file: drafts in tape order. */
export interface Transcript {
  /** The session's id in the file; not validated as a session name. */
  readonly session: string;
  /**
   * Every record as an entry. The key of each derives from its record, so that another import adds only new
   * ones. Each tool call has exactly one result, right after its message.
   */
  readonly drafts: readonly Draft[];
  readonly counts: TranscriptCounts;
  /** The first draft that each boundary keeps in view, by the keys of both. */
  readonly keeps?: ReadonlyMap<string, string>;
}

/** Counts of an empty file. */
export const noCounts: TranscriptCounts = {
  records: 0,
  messages: 0,
  offPath: 0,
  repaired: 0,
  compactions: 0,
  merged: 0,
  reordered: 0,
  dangling: 0,
  skipped: 0,
  glued: 0,
  truncated: 0,
  irregular: 0,
};
