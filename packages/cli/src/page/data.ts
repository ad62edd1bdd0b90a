/**
 * What the page of `tape ui` asks, and what it is answered: types alone, which the page and the server share. Each method of
 * `PageData` is a route of the server, and a function of this room; the page in an exported file answers the same out of the
 * data inside it. Lists come in parts, and entries by their positions, so that no answer grows with the home. Deleted sessions
 * are in no answer. Texts are those of the tape: a page that shows them must not take them for markup.
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
  /** Where the home stands: events begin behind it. A text that only `follow` reads. */
  readonly at: string;
}

/** A session in a list. */
export interface SessionRow {
  /** What commands and addresses name it by: its name, or its ULID. */
  readonly session: string;
  /** Its name as a reader sees it, where `session` is its ULID. */
  readonly name?: string;
  readonly id: string;
  readonly kind: string;
  /** What became of it, in the words of `tape sessions`. */
  readonly state: string;
  readonly tone: Tone;
  /** Its title, or the beginning of its first prompt or task; empty where it has none. */
  readonly about: string;
  /** Its parent in the tree. */
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
  /** A text in the name, the title or the first prompt, in either case. */
  readonly find?: string;
  readonly kind?: string;
  /** `open`: runs, waits or was interrupted; `failed`: ended otherwise than it should. */
  readonly state?: 'open' | 'merged' | 'failed';
  /** Without `tree` alone. */
  readonly sort?: 'last' | 'created' | 'name' | 'messages' | 'tokens';
  /** Each below its nearest ancestor that is listed too. */
  readonly tree?: boolean;
  /** Archived ones and drafts too. */
  readonly all?: boolean;
  /** What the part before gave as `next`. */
  readonly offset?: number;
}

/**
 * A part of a list: at most 200 rows. It can have fewer, or none, and a `next` all the same: an answer looks at a bounded
 * number of sessions.
 */
export interface Page<T> {
  readonly rows: readonly T[];
  /** The offset of the next part; absent behind the last. No number of rows, where the list is filtered or a tree. */
  readonly next?: number;
  /** How long the whole list is, where that is known: then `offset` can be any number of rows. */
  readonly total?: number;
}

/** A row of the lineage: a session, something that stands on its lane, or what is folded. */
export interface LineageRow {
  readonly depth: number;
  /** Whether the lane of each session above goes on below this row, the root's first; of a deep row the last 40. */
  readonly lanes: readonly boolean[];
  /** `merge`: a merge into the session on whose lane it stands; `more`: what is folded. */
  readonly shape: 'session' | 'anchor' | 'handoff' | 'merge' | 'more';
  /** Of a session: whether it goes on, its work is in its parent, or it ended without that. */
  readonly standing?: 'open' | 'merged' | 'ended';
  /** What the row says, as `tape graph` says it. */
  readonly label: string;
  /**
   * The session of the row, or on whose lane the mark stands; of folded rows, the session above them. Absent for a deleted
   * session, which stands for those below it.
   */
  readonly session?: string;
  /** Its name as a reader sees it, where `session` is its ULID. */
  readonly name?: string;
  /** Of a mark, its position. */
  readonly seq?: number;
  readonly id?: string;
  readonly kind?: string;
  readonly state?: string;
  readonly tone?: Tone;
  /** Of a session, its title or the beginning of its first prompt or task; empty where it has none. */
  readonly about?: string;
  /** Its parent in the tree. */
  readonly parent?: string;
  readonly head?: number;
  /** When something was last said in the session, or it was created: ISO 8601. */
  readonly at?: string;
  /** The last position that the session inherits: where it left its parent. */
  readonly base?: number;
  /** Of a session, the merges of it; of a row `merge`, the one that it is. */
  readonly merges?: readonly LineageMerge[];
  /** How many sessions this row shows, or folds. */
  readonly sessions: number;
  /** What is below the session is left out, as was asked. */
  readonly closed?: boolean;
}

/** A part of the lineage. */
export interface Lineage extends Page<LineageRow> {
  /** Draws it in a terminal. */
  readonly command: string;
}

/** A merge or a discard of a child. */
export interface LineageMerge {
  readonly child: string;
  /** The positions of the child that it covers, both included. */
  readonly range?: readonly [number, number];
  readonly into: string;
  readonly seq: number;
  readonly state: 'merged' | 'discarded';
  /** A rewind hides it. */
  readonly undone?: boolean;
}

/** A session as its page shows it. */
export interface SessionInfo extends SessionRow {
  /** The first position of its timeline is the one after it. */
  readonly floor: number;
  readonly aliases: readonly string[];
  /** The session that it was forked from. */
  readonly origin?: string;
  readonly fromAnchor?: string;
  /** Its last merge or discard. */
  readonly merged?: LineageMerge;
  /** What a person can do, as commands. */
  readonly commands: readonly Command[];
  /** Calls that wait for an answer, of the session and of those below it; at most 50. */
  readonly waiting: readonly WaitingCall[];
  /** Its anchors, handoffs and compactions, oldest first; the last 200. */
  readonly anchors: readonly {
    readonly seq: number;
    readonly name: string;
    readonly shape: 'anchor' | 'handoff' | 'compaction';
  }[];
}

export interface Command {
  readonly what: string;
  readonly line: string;
}

export interface WaitingCall {
  /** The session whose call it is: this one, or one below it. */
  readonly session: string;
  /** Where the call was made. */
  readonly seq: number;
  readonly call: string;
  readonly tool: string;
  /** Its arguments, one a line. */
  readonly input: string;
  readonly cut?: Cut;
  readonly for: 'approval' | 'result' | 'tool' | 'children';
  /** What it waits for, in words. */
  readonly what: string;
  /** What it claims to do: `write(/a/b)`. */
  readonly claims: readonly string[];
  readonly commands: readonly Command[];
}

/** Something that a timeline shows at a position. */
export interface TimelineItem {
  readonly seq: number;
  /** The session whose own tape has it; its ULID where that has no name. */
  readonly owner: string;
  readonly inherited: boolean;
  /**
   * `forks`: children that left here, behind what else stands at the position; `result`: what a session states as its
   * result.
   */
  readonly kind:
    | 'message'
    | 'anchor'
    | 'boundary'
    | 'merge'
    | 'rewind'
    | 'redaction'
    | 'result'
    | 'event'
    | 'forks';
  readonly role?: 'user' | 'assistant' | 'tool';
  /** A message that its user did not type: a reminder, what a skill says, a record of the program that was imported. */
  readonly aside?: boolean;
  /** ISO 8601; absent for what an import has no time of. */
  readonly at?: string;
  readonly model?: string;
  /** All tokens of the model call. */
  readonly tokens?: number;
  /** Of an anchor, an event: its name. */
  readonly name?: string;
  readonly parts: readonly Part[];
  /** The rewind that hides it: only where hidden items are wanted. */
  readonly hiddenBy?: number;
  /** Of a rewind in the place of what it hides: the positions, how many entries they are, and what it undoes, in words. */
  readonly hides?: {
    readonly from: number;
    readonly to: number;
    readonly entries: number;
    readonly what: string;
  };
  /** Of a redaction: the entry whose content it erased. */
  readonly of?: number;
  /** Of a merge: the child and its range. `there`: the child can be opened. */
  readonly child?: {
    readonly session: string;
    readonly there: boolean;
    readonly range?: readonly [number, number];
    readonly state: string;
    readonly tone: Tone;
  };
  /** Of `forks`: some of the children, and whether there are more, which the command lists. */
  readonly forks?: readonly { readonly session: string; readonly state: string; readonly tone: Tone }[];
  readonly moreForks?: boolean;
  /** What its model saw is recorded. */
  readonly seen?: boolean;
  readonly commands: readonly Command[];
}

/** A part of a message. Long texts are cut; the command shows all. */
export type Part =
  | { readonly type: 'text'; readonly text: string; readonly cut?: Cut }
  | { readonly type: 'reasoning'; readonly text: string; readonly cut?: Cut }
  | CallPart
  /** What a tool returned, without the call; or what a command of an imported agent printed. */
  | {
      readonly type: 'output';
      readonly tool?: string;
      readonly text: string;
      readonly state: CallState;
      readonly cut?: Cut;
    }
  | { readonly type: 'file'; readonly mediaType: string; readonly bytes?: number; readonly name?: string }
  /** The state of an anchor, or the payload of an event, as JSON. */
  | { readonly type: 'state'; readonly text: string; readonly cut?: Cut }
  /** There is no content: it was erased, a bundle did not bring it, or what is stored cannot be read. */
  | { readonly type: 'gone'; readonly why: 'redacted' | 'absent' | 'damaged' }
  /** So many more parts, which the command shows. */
  | { readonly type: 'more'; readonly parts: number; readonly line: string };

/** A call, with its result where it has one. */
export interface CallPart {
  readonly type: 'call';
  readonly call: string;
  readonly tool: string;
  /** The call on one line. */
  readonly brief: string;
  /** Its arguments, one a line. */
  readonly input: string;
  readonly cut?: Cut;
  readonly state: CallState;
  readonly output?: string;
  readonly outputSeq?: number;
  readonly outputCut?: Cut;
}

/** `waiting`: there is no result yet; `gone`: its content was erased, or is not here. */
export type CallState = 'done' | 'failed' | 'denied' | 'waiting' | 'gone';

/** How long a text is of which only the beginning is here, and the command that prints all. */
export interface Cut {
  readonly chars: number;
  readonly line: string;
}

/**
 * Items of a session in a range of positions. The positions that it covers can differ from those of the query: fewer, where
 * the texts are long, and more, where a rewind hides all of them.
 */
export interface Timeline {
  readonly items: readonly TimelineItem[];
  /** The positions that the items cover, both included: ask on from `to + 1`, or back to `from - 1`. */
  readonly from: number;
  readonly to: number;
  readonly floor: number;
  readonly head: number;
}

/** Positions, both included. */
export interface SeenRange {
  readonly from: number;
  readonly to: number;
  readonly in: boolean;
  readonly why: string;
}

/** What a model was given for an answer; or, at a position of no answer, what it would be given there. */
export interface Seen {
  readonly session: string;
  readonly seq: number;
  /** What is at the position; `damaged`: what is stored there cannot be read. */
  readonly entry: 'answer' | 'other' | 'damaged';
  /** Of what is no answer: the positions of the answer before it and of the one behind it, as far as there are. */
  readonly nearest?: readonly number[];
  readonly policy: string;
  readonly target?: string;
  readonly tokens: number;
  readonly digest: string;
  /** How many outputs of tools it had without their content. */
  readonly pruned?: number;
  /** Whether the tape still yields that view; absent where it was not recorded, or has too many entries to make it again. */
  readonly same?: boolean;
  /** Why it cannot be made. */
  readonly fault?: string;
  /** Whether a manifest was recorded with the answer; false: what a view would be here by the rules of today. */
  readonly recorded: boolean;
  /** Ranges of positions, in order; the last 500. */
  readonly ranges: readonly SeenRange[];
  readonly more?: number;
  /** The answer before it whose view is recorded, and what changed since. */
  readonly before?: {
    readonly seq: number;
    readonly tokens: number;
    readonly policy: string;
    /** What is in the view now and was not then, and the other way round; each at most 200. */
    readonly added: readonly (readonly [number, number])[];
    readonly removed: readonly SeenRange[];
  };
  /** Shows the messages themselves; or, where they cannot be read, what is wrong. */
  readonly commands: readonly Command[];
}

/** One side of a comparison. */
export interface PartingSide {
  readonly session: string;
  readonly at: number;
  readonly head: number;
  readonly entries: number;
  readonly messages: number;
  /** Calls by tool. */
  readonly tools: readonly { readonly tool: string; readonly calls: number }[];
  /** False where only the newest entries were read, or some names are left out. */
  readonly complete: boolean;
}

/** Where two sessions part. The entries of each side are its timeline behind `common`. */
export interface Parting {
  readonly a: PartingSide;
  readonly b: PartingSide;
  /** The last entry that both have. */
  readonly common?: { readonly session: string; readonly seq: number };
  /** At most 200; `wrote` where one of them wrote it. */
  readonly files: readonly {
    readonly path: string;
    readonly in: 'a' | 'b' | 'both';
    readonly wrote: boolean;
  }[];
  /** Keys of anchor states with their last values as JSON; at most 200. */
  readonly states: readonly { readonly key: string; readonly a?: string; readonly b?: string }[];
  /** The last answers as a unified diff; absent where one is missing, or they have too little in common. */
  readonly answers?: string;
  readonly command: string;
}

/** Where an entry came from, and where it went; flat, in preorder. */
export interface TraceRow {
  readonly depth: number;
  readonly direction: 'here' | 'from' | 'into' | 'inherited';
  readonly text: string;
  /** Where a click leads; absent for a deleted session. Without a position, to the session. */
  readonly session?: string;
  readonly seq?: number;
  /** Of a source: the positions of the child that were merged. */
  readonly range?: readonly [number, number];
  /** Of `here`: traces it in a terminal. */
  readonly command?: string;
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
  /** Of the session, with `tree` of all below it too, or of the home. */
  readonly total: UsageRow;
  /** Most tokens first; the first 200. An empty key: the model is not recorded. */
  readonly models: readonly UsageRow[];
  readonly sessions: readonly UsageRow[];
  /** By day in UTC, `2026-11-21`, oldest first: the plot. The last 1,000 days with calls. */
  readonly days: readonly UsageRow[];
  readonly command: string;
}

/** Something that a check found. */
export interface Finding {
  readonly id: string;
  readonly code: string;
  /** As `tape check` has it: `damage` was changed or lost, `incomplete` work is not finished, a `note` harms nothing. */
  readonly weight: 'damage' | 'incomplete' | 'note';
  readonly section: string;
  readonly text: string;
  /** What it is about: a session, or an entry of it. */
  readonly session?: string;
  readonly seq?: number;
  readonly command?: string;
}

export interface Findings {
  readonly checkedAt: string;
  readonly sessions: number;
  readonly entries: number;
  /** The worst first; at most 500, of `total`. */
  readonly findings: readonly Finding[];
  readonly total: number;
  readonly command: string;
}

/** Something that changed while the page is open. */
export interface PageEvent {
  /** Where the home stands behind it: a page that was cut off goes on from there. */
  readonly at: string;
  /**
   * `entries`: the session has more of them; `lineage`: a session was made, merged, renamed or the like; `state`: it began or
   * ceased to run, or to wait; `all`: more changed than can be said one by one, and the page asks anew.
   */
  readonly what: 'entries' | 'lineage' | 'state' | 'all';
  /** The session; empty with `all`. A session that was deleted has the state `deleted`. */
  readonly session: string;
  readonly id: string;
  readonly parent?: string;
  readonly head: number;
  readonly state: string;
  readonly tone: Tone;
}

/**
 * Whether changes arrive: at once, when the connection is there again, or no longer; or the server says nothing since a time,
 * in milliseconds, though the connection is there.
 */
export type Liveness = 'live' | 'lost' | 'ended' | { readonly silentSince: number };

/** Who follows a home. */
export interface Follower {
  readonly event: (event: PageEvent) => void;
  readonly liveness: (state: Liveness) => void;
}

/** Why something was not answered: the body of an answer that is not 200. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
}

/** All that the page asks. Each answer is JSON. */
export interface PageData {
  home(): Promise<HomeInfo>;
  sessions(query: SessionsQuery): Promise<Page<SessionRow>>;
  /** The whole family of a session, or the newest trees, each with less of it unless `all`. */
  lineage(query: {
    readonly session?: string;
    readonly all?: boolean;
    /** The ULIDs of sessions of which all below is wanted, and of those of which nothing is. */
    readonly opened?: readonly string[];
    readonly closed?: readonly string[];
    readonly offset?: number;
  }): Promise<Lineage>;
  session(query: { readonly session: string }): Promise<SessionInfo>;
  /** At most 200 positions of a session. */
  timeline(query: {
    readonly session: string;
    readonly from: number;
    readonly to: number;
    /** Entries outside of the conversation too: events, records of imports, notes to the model. */
    readonly all?: boolean;
    /** Those that a rewind hides too, in the place of what says that they are hidden. */
    readonly hidden?: boolean;
  }): Promise<Timeline>;
  seen(query: { readonly session: string; readonly seq: number }): Promise<Seen>;
  /** `a` and `b`: SESSION or SESSION@POINT. */
  parting(query: { readonly a: string; readonly b: string }): Promise<Parting>;
  trace(query: { readonly session: string; readonly seq: number }): Promise<readonly TraceRow[]>;
  usage(query: { readonly session?: string; readonly tree?: boolean }): Promise<UsageAnswer>;
  findings(query: { readonly session?: string }): Promise<Findings>;
  /** Tells `follower` what changes behind `after`, until `signal` is aborted. Absent where nothing can change. */
  readonly follow?: (after: string, follower: Follower, signal: AbortSignal) => void;
}
