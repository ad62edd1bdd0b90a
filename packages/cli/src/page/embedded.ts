/**
 * The data inside of an exported file, as JSON that is compressed: whole answers to what the page asks (`PageData`). The page
 * filters and slices them as a server does. What several sessions show is in it once.
 */
import type {
  Findings,
  HomeInfo,
  LineageRow,
  Parting,
  Seen,
  SessionInfo,
  SessionRow,
  TimelineItem,
  TraceRow,
  UsageAnswer,
} from './data.ts';

/** All that an exported file can answer. Names of sessions are those of `sessions`. */
export interface Embedded {
  readonly home: HomeInfo;
  /** By the last message, the newest first. */
  readonly sessions: readonly SessionRow[];
  /** All rows: nothing is folded or closed. */
  readonly lineage: readonly LineageRow[];
  /** By name. */
  readonly tapes: Readonly<Record<string, EmbeddedTape>>;
  /** By `SESSION@SEQ`. */
  readonly seen: Readonly<Record<string, Seen>>;
  readonly trace: Readonly<Record<string, readonly TraceRow[]>>;
  /** A session and another one; most often each with its parent. */
  readonly partings: readonly Parting[];
  /** By name, and of all sessions under an empty one. */
  readonly usage: Readonly<Record<string, { readonly alone: UsageAnswer; readonly tree: UsageAnswer }>>;
  /** The command that draws the lineage of a session, by name; that of all under an empty one. */
  readonly graph: Readonly<Record<string, string>>;
  readonly findings: Findings;
}

/** A session with its own entries and landmarks. What it inherits is in its `origin`, up to its `base`. */
export interface EmbeddedTape {
  readonly info: SessionInfo;
  /** Its own items, those too that a rewind hides, as this session shows them. */
  readonly items: readonly TimelineItem[];
  /** What is hidden of what it inherits: the first and the last position, and the rewind. */
  readonly hidden: readonly (readonly [from: number, to: number, by: number])[];
  /** What stands for those of them that its origin does not hide in the same way. */
  readonly gaps: readonly TimelineItem[];
}
