import type { Draft } from '@tapedeck/tape';
import type { BadLine } from './json-lines.ts';

/** Counts of what was read. */
export interface TranscriptCounts {
  /** JSON objects in the file. */
  readonly records: number;
  /** User and assistant messages. */
  readonly messages: number;
  /** Records off the conversation's path: other branches, subagents, progress, side records. */
  readonly offPath: number;
  /** Tool calls without a result, which get the result `interrupted`. */
  readonly repaired: number;
  /** Boundaries at which the agent compacted the conversation. */
  readonly compactions: number;
  /** Messages built from several records. */
  readonly merged: number;
  /** Results moved to their message past another message in the file. */
  readonly reordered: number;
  /** Steps of the path whose parent is missing from the file or repeats. */
  readonly dangling: number;
  /** Lines without a record, and records too large to keep verbatim. */
  readonly skipped: number;
  /** Lines that contain several records without a newline between them. */
  readonly glued: number;
  /** 1 if an incomplete last line was left out. */
  readonly truncated: number;
}

/** A transcript as one session: drafts in tape order. */
export interface Transcript {
  /** The session's id in the file; not validated as a session name. */
  readonly session: string;
  readonly title?: string;
  /**
   * Every record as an entry. The key of each derives from its record, so that another import adds only new
   * ones. Each tool call has exactly one result, right after its message.
   */
  readonly drafts: readonly Draft[];
  /**
   * The number of drafts that a longer version of the file repeats unchanged. The rest belong to a last
   * message that may still grow or receive results, so an import of a live file stores only the settled ones.
   */
  readonly settled: number;
  readonly counts: TranscriptCounts;
  /** The places of lines that are not JSON and were left out, the first of them; `counts.skipped` has all. */
  readonly bad?: readonly BadLine[];
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
};
