/**
 * What the page of `tape ui` asks, and what it is answered: types alone, which the page and the server share. Each method of
 * `PageData` is a route of the server, and a function of this room; the page in an exported file answers the same out of the
 * data inside it. Lists come in parts, and entries by their positions, so that no answer grows with the home.
 */

/** How a session is, for people: a word, and what it means. */
export type Tone = 'good' | 'bad' | 'open' | 'plain';

/** The home that is shown. */
export interface HomeInfo {
  /** The name of its folder, or of the exported session. */
  readonly title: string;
  readonly version: string;
  /** Whether what is shown can grow: false in an exported file. */
  readonly isLive: boolean;
  /** Sessions that are neither deleted nor hidden. */
  readonly sessions: number;
  /** Of an exported file: when it was made, ISO 8601, and how many secrets were replaced. */
  readonly exported?: { readonly at: string; readonly redacted: number };
  /** The number of the last change: events begin behind it. */
  readonly at: number;
}

/** A session in a list. */
export interface SessionRow {
  readonly session: string;
  readonly id: string;
  readonly kind: string;
  /** What became of it, in the words of `tape sessions`. */
  readonly state: string;
  readonly tone: Tone;
  /** Its title, or the beginning of its first prompt or task. */
  readonly about: string;
  readonly parent?: string;
  /** The last position that it inherits. */
  readonly base: number;
  readonly head: number;
  readonly messages: number;
  readonly tokens: number;
  readonly children: number;
  /** ISO 8601. */
  readonly lastMessageAt?: string;
  readonly createdAt: string;
  /** How many sessions above it are listed; 0 without `tree`. */
  readonly depth: number;
}

/** What sessions to list. */
export interface SessionsQuery {
  readonly find?: string;
  readonly kind?: string;
  /** `open`: runs, waits or was interrupted. */
  readonly state?: 'open' | 'merged' | 'failed';
  readonly sort?: 'last' | 'created' | 'name' | 'messages' | 'tokens';
  readonly tree?: boolean;
  /** Archived ones and drafts too. */
  readonly all?: boolean;
  readonly offset?: number;
}

/** A part of a list, and how long all of it is as far as is known. */
export interface Page<T> {
  readonly rows: readonly T[];
  /** The offset of the next part; absent behind the last. */
  readonly next?: number;
  readonly total?: number;
}

/** A row of the lineage: a session, something that stands on its lane, or what is folded. */
export interface LineageRow {
  readonly depth: number;
  /** Whether the lane of each session above goes on below this row, the root's first. */
  readonly lanes: readonly boolean[];
  readonly shape: 'session' | 'fork' | 'anchor' | 'merge' | 'more';
  readonly label: string;
  /** Where a click leads: `SESSION` or `SESSION@SEQ`. */
  readonly place?: string;
  readonly session?: string;
  readonly state?: string;
  readonly tone?: Tone;
  /** How many sessions this row shows, or folds. */
  readonly sessions: number;
}

/** A session as its page shows it. */
export interface SessionInfo extends SessionRow {
  readonly aliases: readonly string[];
  readonly fromAnchor?: string;
  readonly mergedInto?: { readonly session: string; readonly seq: number };
  /** What a person can do, as commands. */
  readonly commands: readonly Command[];
  /** Calls that wait for an answer. */
  readonly waiting: readonly WaitingCall[];
  /** The positions of its anchors and boundaries, oldest first; at most 200. */
  readonly anchors: readonly { readonly seq: number; readonly name: string }[];
}

export interface Command {
  readonly what: string;
  readonly line: string;
}

export interface WaitingCall {
  readonly seq: number;
  readonly call: string;
  readonly tool: string;
  readonly for: string;
  readonly commands: readonly Command[];
}

/** Something that a timeline shows at a position. */
export interface TimelineItem {
  readonly seq: number;
  /** The session whose own tape has it, and whether that is an ancestor. */
  readonly owner: string;
  readonly inherited: boolean;
  readonly kind: 'message' | 'anchor' | 'boundary' | 'merge' | 'rewind' | 'redaction' | 'event';
  readonly role?: 'user' | 'assistant' | 'tool';
  readonly at: string;
  readonly model?: string;
  readonly tokens?: number;
  /** Of an anchor, an event: its name. */
  readonly name?: string;
  readonly parts: readonly Part[];
  /** The rewind that hides it. */
  readonly hiddenBy?: number;
  /** Of a merge: the child and its range. */
  readonly child?: { readonly session: string; readonly range: readonly [number, number]; readonly state: string };
  /** Children that left behind this position. */
  readonly forks?: readonly { readonly session: string; readonly state: string; readonly tone: Tone }[];
  readonly commands: readonly Command[];
}

/** A part of a message. Long texts are cut; the command shows all. */
export type Part =
  | { readonly type: 'text'; readonly text: string; readonly cut?: Cut }
  | { readonly type: 'reasoning'; readonly text: string; readonly cut?: Cut }
  | {
      readonly type: 'call';
      readonly call: string;
      readonly tool: string;
      readonly input: string;
      readonly state: 'done' | 'failed' | 'waiting' | 'denied' | 'interrupted';
      readonly output?: string;
      readonly outputSeq?: number;
      readonly cut?: Cut;
    }
  | { readonly type: 'file'; readonly mediaType: string; readonly bytes?: number; readonly name?: string }
  | { readonly type: 'state'; readonly text: string; readonly cut?: Cut }
  | { readonly type: 'gone'; readonly why: 'redacted' | 'absent' };

/** How long a text is of which only the beginning is here, and the command that prints all. */
export interface Cut {
  readonly chars: number;
  readonly line: string;
}

/** Items of a session in a range of positions. */
export interface Timeline {
  readonly items: readonly TimelineItem[];
  /** The positions that they cover, both included. */
  readonly from: number;
  readonly to: number;
  readonly floor: number;
  readonly head: number;
}

/** What a model was given for an answer. */
export interface Seen {
  readonly session: string;
  readonly seq: number;
  readonly policy: string;
  readonly target?: string;
  readonly tokens: number;
  readonly digest: string;
  /** Whether the tape still yields that view; absent where it was not recorded. */
  readonly same?: boolean;
  /** Whether a manifest was recorded with the answer; false: what a view would be now. */
  readonly recorded: boolean;
  /** Ranges of positions, in order. */
  readonly ranges: readonly { readonly from: number; readonly to: number; readonly in: boolean; readonly why: string }[];
  /** The answer before it in the same session, to compare with. */
  readonly before?: number;
}

/** Where two sessions part. */
export interface Parting {
  readonly a: { readonly session: string; readonly at: number; readonly head: number };
  readonly b: { readonly session: string; readonly at: number; readonly head: number };
  /** The last entry that both have. */
  readonly common?: { readonly session: string; readonly seq: number };
  readonly files: readonly { readonly path: string; readonly in: 'a' | 'b' | 'both' }[];
  readonly states: readonly { readonly key: string; readonly a?: string; readonly b?: string }[];
  readonly command: string;
}

/** Where an entry came from, and where it went; flat, in preorder. */
export interface TraceRow {
  readonly depth: number;
  readonly direction: 'here' | 'from' | 'into' | 'inherited';
  readonly place?: string;
  readonly text: string;
}

/** Tokens of a session, a model or a day. */
export interface UsageRow {
  readonly key: string;
  readonly steps: number;
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly total: number;
  readonly cost?: number;
}

export interface UsageAnswer {
  readonly total: UsageRow;
  readonly models: readonly UsageRow[];
  readonly sessions: readonly UsageRow[];
  /** By day in UTC, `2026-11-21`, oldest first: the plot. */
  readonly days: readonly UsageRow[];
}

/** Something that a check found. */
export interface Finding {
  readonly code: string;
  readonly severity: 'damage' | 'unfinished' | 'note';
  readonly text: string;
  readonly place?: string;
  readonly command?: string;
}

export interface Findings {
  readonly checkedAt: string;
  readonly findings: readonly Finding[];
}

/** Something that changed while the page is open. */
export interface PageEvent {
  /** Its number: a page that was cut off goes on behind it. */
  readonly id: number;
  readonly session: string;
  readonly head: number;
  readonly state: string;
  readonly tone: Tone;
  readonly what: 'entry' | 'lineage' | 'state';
}

/** All that the page asks. Each answer is JSON. */
export interface PageData {
  home(): Promise<HomeInfo>;
  sessions(query: SessionsQuery): Promise<Page<SessionRow>>;
  /** The family of a session, or the newest trees. */
  lineage(query: { readonly session?: string; readonly all?: boolean; readonly offset?: number }): Promise<Page<LineageRow>>;
  session(query: { readonly session: string }): Promise<SessionInfo>;
  /** At most 200 positions of a session. */
  timeline(query: {
    readonly session: string;
    readonly from: number;
    readonly to: number;
    /** Entries outside of the conversation too, and those that a rewind hides. */
    readonly all?: boolean;
  }): Promise<Timeline>;
  seen(query: { readonly session: string; readonly seq: number }): Promise<Seen>;
  parting(query: { readonly a: string; readonly b: string }): Promise<Parting>;
  trace(query: { readonly session: string; readonly seq: number }): Promise<readonly TraceRow[]>;
  usage(query: { readonly session?: string; readonly tree?: boolean }): Promise<UsageAnswer>;
  findings(query: { readonly session?: string }): Promise<Findings>;
  /** Calls `on` with what changes behind `after`, until `signal` is aborted. Absent where nothing can change. */
  readonly follow?: (after: number, on: (event: PageEvent) => void, signal: AbortSignal) => void;
}
