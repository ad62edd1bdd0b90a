import type { Draft } from '@tapedeck/tape';

/** What was read and how it was read, as numbers to show and to check. */
export interface TranscriptCounts {
  /** JSON objects in the file. */
  readonly records: number;
  /** Messages of a person and of the model. */
  readonly messages: number;
  /** Records beside the conversation's path: other branches, subagents, progress, side records. */
  readonly offPath: number;
  /** Tool calls without a result, answered as interrupted. */
  readonly repaired: number;
  /** Boundaries where the agent summarised what came before. */
  readonly compactions: number;
  /** Messages put together from several records. */
  readonly merged: number;
  /** Results moved to their message over another message in the file. */
  readonly reordered: number;
  /** Places on the path whose parent is not in the file, or whose parents run in a circle. */
  readonly dangling: number;
  /** Lines that hold no record, and records too large to keep as they are. */
  readonly skipped: number;
  /** Lines that held several records without a newline between them. */
  readonly glued: number;
  /** 1 when an unfinished last line was left out. */
  readonly truncated: number;
}

/** One transcript as one session: drafts in the order in which a tape takes them. */
export interface Transcript {
  /** The session's id as the file gives it; not checked as a session name. */
  readonly session: string;
  readonly title?: string;
  /**
   * Every record as an entry. Each has a key from its record, so that importing again adds only what is new.
   * Each tool call has exactly one result, right after its message.
   */
  readonly drafts: readonly Draft[];
  /**
   * How many of the drafts a longer version of the file will repeat as they are. The rest is a last message
   * that may still grow or get its results: whoever imports a live file stores no more than these.
   */
  readonly settled: number;
  readonly counts: TranscriptCounts;
}
