/**
 * Stores. `TapeStore` below is what all of them promise. `sqlite.ts` and its reading half `reader.ts` implement it by
 * calling the acts of the other rooms, each in one transaction; the rest opens, migrates, backs up and checks the
 * database file. Imports `inbox` and what lies below.
 */
import type { Problem } from '../check/verify.ts';
import type { Awaitable, Draft, Entry, Meta, Seq } from '../entry/entry.ts';
import type { Json } from '../entry/json.ts';
import type { Forked } from '../fork/fork.ts';
import type { ForkRequest } from '../fork/request.ts';
import type { Redacted } from '../history/redact.ts';
import type { Rewound } from '../history/rewind.ts';
import type { InboxDraft, InboxItem, Taken } from '../inbox/inbox.ts';
import type { LineageLine } from '../lineage/line.ts';
import type { LineageQuery } from '../lineage/read.ts';
import type { Collected } from '../merge/collect.ts';
import type { ConflictReport } from '../merge/conflicts.ts';
import type { MergeDraft, MergeRequest } from '../merge/plan.ts';
import type { Merged } from '../merge/receipt.ts';
import type { Owner } from '../owner.ts';
import type { Hit, SearchQuery } from '../search/search.ts';
import type { SessionInit } from '../session/session.ts';
import type { StageInit } from '../session/stage.ts';
import type { Appended } from '../tape/append.ts';
import type { LiveStream, StreamChunk } from '../tape/chunks.ts';
import type { SessionInfo, SessionQuery } from '../tape/info.ts';
import type { Lease, SessionOwner } from '../tape/lease.ts';
import type { Point } from '../tape/point.ts';
import type { EntryQuery as RowQuery } from '../tape/read.ts';
import type { Lifecycle, Ref, Task } from '../tape/tape.ts';
import type { ViewPolicy } from '../view/policy.ts';
import type { ForkPreview, MergePreview } from './preview.ts';

/** Which entries of a session to read. */
export interface EntryQuery extends RowQuery {
  /** Only what follows an anchor or position. */
  readonly since?: Point;
}

export interface WriteOptions {
  /** The lease to write under. Without one the act is a one-shot, refused while another owner is writing. */
  readonly lease?: Lease | undefined;
}

export interface AppendOptions extends WriteOptions {
  /** Key of the batch: its entries without a key of their own get `key`, `key#2`, … */
  readonly key?: string | undefined;
  /** The head hash (hex) that the caller read: refused when the session has moved on. */
  readonly expectHead?: string | undefined;
}

export interface DrainOptions {
  /** Ids of items whose time has not come: they stay where they are. */
  readonly later?: readonly string[];
}

/** What became of something posted. */
export interface Posted {
  /** The item's; when it is on the tape already, the key under which it was posted. */
  readonly id: string;
  /** Who is writing the session now, if anyone is. */
  readonly owner?: Owner;
  /** The receipt, when all of it is on the tape already: nothing waits then. */
  readonly appended?: Appended;
}

/**
 * Tapes of one home. `SqliteTapeStore` returns plain values; other stores may return promises. Every method that
 * takes a session throws TAPE_NO_SESSION when there is none.
 */
export interface TapeStore extends AsyncDisposable {
  /**
   * How long an act that returns a plain value waits for the lock of another process, holding the thread, in
   * milliseconds. It can be set at any time; with 0 an act gives up soon. A store that never holds the thread has none.
   */
  lockWaitMs?: number;
  /** Gets or creates (B2). `created` tells which. */
  session(name: string, init?: SessionInit): Awaitable<SessionInfo & { readonly created: boolean }>;
  find(ref: Ref): Awaitable<SessionInfo | undefined>;
  /** Newest first; with `parent` or `after`, in the order in which they were made. */
  sessions(query?: SessionQuery): Awaitable<readonly SessionInfo[]>;
  /** The position that a point means; TAPE_NO_ANCHOR carries near names. */
  resolve(ref: Ref, point: Point): Awaitable<Seq>;
  /** Paged; holds nothing open between pages. */
  read(ref: Ref, query?: EntryQuery): Iterable<Entry> | AsyncIterable<Entry>;
  /** The entries that `view` needs for a policy, as the session stood at `at` (default: its head). */
  viewEntries(ref: Ref, o?: { policy?: ViewPolicy; at?: Point }): Iterable<Entry> | AsyncIterable<Entry>;
  append(ref: Ref, batch: readonly Draft[], o?: AppendOptions): Awaitable<Appended>;
  /** Records what a child came to, explicitly: a text or a value (`result` entry). */
  result(ref: Ref, value: Json, o?: WriteOptions & { readonly meta?: Meta }): Awaitable<Appended>;
  fork(parent: Ref, request?: ForkRequest): Awaitable<Forked>;
  /** What `fork` would write and return, without writing anything; it is refused for the same reasons. */
  previewFork(parent: Ref, request?: ForkRequest): Awaitable<ForkPreview>;
  /** Writes a child's result at its parent's tail; again, it returns the same receipt. */
  merge(child: Ref, request?: MergeRequest, o?: WriteOptions): Awaitable<Merged>;
  /** All or none, in one transaction. */
  mergeAll(drafts: readonly MergeDraft[], o?: WriteOptions): Awaitable<readonly Merged[]>;
  /** The receipt of a merge that was done before and holds for the child as it stands, if there is one. */
  merged(child: Ref, request?: MergeRequest): Awaitable<Merged | undefined>;
  /** What a merge would report, without writing anything. */
  checkMerge(child: Ref, request?: MergeRequest): Awaitable<ConflictReport>;
  /** What `merge` would write and return, without writing anything; it is refused for the same reasons. */
  previewMerge(child: Ref, request?: MergeRequest): Awaitable<MergePreview>;
  /** The marks of the merges and discards on a session's own tape, by child's name, then by position. */
  merges(ref: Ref): Iterable<Entry> | AsyncIterable<Entry>;
  /**
   * What a child came to, read from its own entries: the one source for merges, lists and tools that tell of it. Without
   * a range: what a merge into its parent brings, or has brought when nothing came after it.
   */
  collect(child: Ref, range?: readonly [Seq, Seq]): Awaitable<Collected>;
  /** The rewind that hides a position from what a session shows now, if one does. */
  hiddenBy(ref: Ref, seq: Seq): Awaitable<Seq | undefined>;
  /**
   * The positions that a session shows, rewinds applied, as it stood at a point (default: its head): ranges with both ends
   * included, oldest first. Costs as much as there are rewinds.
   */
  visible(ref: Ref, o?: { readonly at?: Point }): Awaitable<readonly (readonly [Seq, Seq])[]>;
  /** The lines that acts recorded of who came from whom and was merged where, in order; paged as `read` is. */
  lineage(query?: LineageQuery): Iterable<LineageLine> | AsyncIterable<LineageLine>;
  rewind(ref: Ref, to: Point, o?: WriteOptions & { mode?: string }): Awaitable<Rewound>;
  /** Takes the last rewind back, or the one at a position: what it hid is seen again, as it was before it. */
  unrewind(ref: Ref, o?: WriteOptions & { rewind?: Seq }): Awaitable<Rewound>;
  /** Archiving a session that someone is writing is refused, and so is a lifecycle that there is not (TAPE_BAD_STATUS). */
  setLifecycle(ref: Ref, lifecycle: Lifecycle): Awaitable<SessionInfo>;
  /** Only runs call this. */
  setTask(ref: Ref, task: Task, o?: WriteOptions): Awaitable<SessionInfo>;
  /** Another name for a session (N19). The same alias for another session is refused. */
  alias(alias: string, ref: Ref, reason: string): Awaitable<SessionInfo>;
  acquire(ref: Ref, owner: Owner, o?: { ttlMs?: number }): Awaitable<Lease>;
  /** The heartbeat. */
  extend(lease: Lease, o?: { ttlMs?: number }): Awaitable<Lease>;
  /** Whether a lease still gives the right to write: false once another owner has taken the session over. */
  holds(lease: Lease): Awaitable<boolean>;
  /** A number that is another one after anybody has written to the store; cheap enough to ask ten times a second. */
  changes(): Awaitable<number>;
  /** Everybody who is writing a session now. */
  owners(): Awaitable<readonly SessionOwner[]>;
  /**
   * False: the inbox holds something that you can do, and the lease is still yours. What only a run can deal with counts
   * when `inputs` is true.
   */
  release(lease: Lease, o?: { readonly inputs?: boolean }): Awaitable<boolean>;
  /** Leaves something for the owner of a session; of one that is archived, what would start a run is refused (TAPE_ARCHIVED). */
  post(ref: Ref, item: InboxDraft): Awaitable<Posted>;
  inbox(ref: Ref): Awaitable<readonly InboxItem[]>;
  /**
   * Does and removes what the inbox holds, in one transaction; returns how many items that was. What only a run can
   * deal with stays, but for the items in `taken`, whose entries are appended in their order, before all else.
   */
  drain(lease: Lease, taken?: readonly Taken[], o?: DrainOptions): Awaitable<number>;
  /** Does what the inbox of a session holds, if nobody is writing the session; false when somebody is. */
  drainOwnerless(ref: Ref): Awaitable<boolean>;
  /** Saves chunks of live answers; they can be read while those are under way. Survives a kill, not a power cut. */
  saveChunks(streams: readonly LiveStream[]): Awaitable<void>;
  /** The runs of a session that have chunks: under way, or left behind when their process died. */
  liveRuns(ref: Ref): Awaitable<readonly string[]>;
  chunks(ref: Ref, run: string, from?: number): Awaitable<readonly StreamChunk[]>;
  /** Appends what a live answer came to, if anything, and drops its chunks, in one transaction. */
  settle(run: string, batch: readonly Draft[], o: { readonly lease: Lease }): Awaitable<Appended>;
  /** Makes a session that nobody sees until it is published; the same name goes on with it. */
  stage(name: string, init?: StageInit): Awaitable<SessionInfo>;
  /** Appends to a staged session. */
  appendStaged(id: string, batch: readonly Draft[]): Awaitable<Appended>;
  /** Makes staged sessions visible, with their lineage, all or none. */
  publish(ids: readonly string[]): Awaitable<readonly SessionInfo[]>;
  /** The bytes behind a `BlobRef`, all of them or those from byte `from` up to, not including, byte `to`. */
  blob(hash: string, range?: { readonly from?: number; readonly to?: number }): Awaitable<Uint8Array>;
  /** Entries that hold a text, newest first; no character of it has a meaning. */
  search(query: SearchQuery): Awaitable<readonly Hit[]>;
  /** Erases an entry's content for good, and records that and why. */
  redact(ref: Ref, point: Point, reason: string, o?: WriteOptions): Awaitable<Redacted>;
  /** Damage, located; nothing when all is well. Without a session: everything. */
  verify(ref?: Ref): Iterable<Problem> | AsyncIterable<Problem>;
}
