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
import type { HandledItem, InboxDraft, InboxItem } from '../inbox/inbox.ts';
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

/** Selects entries of a session. */
export interface EntryQuery extends RowQuery {
  /** Only entries after this anchor or position. */
  readonly since?: Point;
}

export interface WriteOptions {
  /** The lease to write under. Without one, the call throws TAPE_BUSY while the session has a live lease. */
  readonly lease?: Lease | undefined;
}

export interface AppendOptions extends WriteOptions {
  /** Idempotency key of the batch: entries without their own key get `key`, `key#2`, … */
  readonly key?: string | undefined;
  /**
   * Hash (hex) of the head that the caller read.
   * @throws TAPE_STALE_HEAD when the session has another head.
   */
  readonly expectHead?: string | undefined;
}

export interface DrainOptions {
  /** Ids of items to keep in the inbox. */
  readonly later?: readonly string[];
}

/** The receipt of `post`. */
export interface Posted {
  /** Id of the inbox item; when the entries are already on the tape, the key they were posted under. */
  readonly id: string;
  /** The owner of the session's live lease, if it has one. */
  readonly owner?: Owner;
  /** The receipt of the append, when all entries are already on the tape. Nothing was posted then. */
  readonly appended?: Appended;
}

/**
 * The tapes of one home. `SqliteTapeStore` returns plain values; other stores may return promises.
 * @throws TAPE_NO_SESSION from every method that takes a session, when no session has that name, alias or id
 */
export interface TapeStore extends AsyncDisposable {
  /**
   * How long a synchronous store blocks the thread while another process holds the write lock, in
   * milliseconds. It can change at any time; with 0 a call gives up after about 20 ms. Asynchronous stores
   * leave it undefined.
   */
  lockWaitMs?: number;
  /**
   * Returns the session of a name and creates it if it does not exist; `created` says which.
   * @throws TAPE_BAD_NAME; TAPE_EXISTS when the name is an alias or a point of an existing session
   */
  session(name: string, init?: SessionInit): Awaitable<SessionInfo & { readonly created: boolean }>;
  find(ref: Ref): Awaitable<SessionInfo | undefined>;
  /** Lists sessions, newest first; with `parent` or `after`, in order of creation. */
  sessions(query?: SessionQuery): Awaitable<readonly SessionInfo[]>;
  /**
   * Resolves a point to a position.
   * @throws TAPE_NO_ANCHOR, with near names in `data`; TAPE_NO_SEQ; TAPE_BAD_POINT
   */
  resolve(ref: Ref, point: Point): Awaitable<Seq>;
  /** Reads entries in ascending order, page by page. No statement or lock stays open between pages. */
  read(ref: Ref, query?: EntryQuery): Iterable<Entry> | AsyncIterable<Entry>;
  /** Reads only the entries that `view` needs for a policy, as of position `at` (default: the head). */
  viewEntries(ref: Ref, o?: { policy?: ViewPolicy; at?: Point }): Iterable<Entry> | AsyncIterable<Entry>;
  /**
   * Appends a batch in one transaction, all or nothing. Repeating a batch with the same keys adds nothing.
   * @throws TAPE_BAD_ENTRY, TAPE_KEY_CONFLICT, TAPE_STALE_HEAD, TAPE_BUSY, TAPE_FENCED
   */
  append(ref: Ref, batch: readonly Draft[], o?: AppendOptions): Awaitable<Appended>;
  /** Appends a `result` entry: the explicit result, a text or any JSON value, that `merge` delivers. */
  result(ref: Ref, value: Json, o?: WriteOptions & { readonly meta?: Meta }): Awaitable<Appended>;
  /**
   * Creates a child session by reference, without writing to the parent. The same `key` gives the same child.
   * @throws TAPE_NO_ANCHOR, TAPE_BAD_POINT, TAPE_BAD_NAME, TAPE_EXISTS, TAPE_KEY_CONFLICT; TAPE_BUSY with
   * `whenIdle`
   */
  fork(parent: Ref, request?: ForkRequest): Awaitable<Forked>;
  /** Returns what `fork` would write and return, and throws what it would throw. Writes nothing. */
  previewFork(parent: Ref, request?: ForkRequest): Awaitable<ForkPreview>;
  /**
   * Appends a child's result to its parent's tape. Repeating the merge returns its receipt.
   * @throws TAPE_BUSY, TAPE_UNSETTLED, TAPE_CONFLICT, TAPE_ARCHIVED, TAPE_FENCED
   */
  merge(child: Ref, request?: MergeRequest, o?: WriteOptions): Awaitable<Merged>;
  /** Merges several children in one transaction, all or nothing. */
  mergeAll(drafts: readonly MergeDraft[], o?: WriteOptions): Awaitable<readonly Merged[]>;
  /** Returns the receipt of an earlier merge that covers the child's current head, or undefined. */
  merged(child: Ref, request?: MergeRequest): Awaitable<Merged | undefined>;
  /** Returns the conflicts that a merge would report. Writes nothing. */
  checkMerge(child: Ref, request?: MergeRequest): Awaitable<ConflictReport>;
  /** Returns what `merge` would write and return, and throws what it would throw. Writes nothing. */
  previewMerge(child: Ref, request?: MergeRequest): Awaitable<MergePreview>;
  /** Reads the marks of merges and discards on a session's own tape, by child name, then position. */
  merges(ref: Ref): Iterable<Entry> | AsyncIterable<Entry>;
  /**
   * Reads a child's result, usage and artifact from its own entries; merges, lists and tools all use this.
   * Default range: the positions that a merge into the parent would cover or, if none followed it, that the
   * last merge covered.
   */
  collect(child: Ref, range?: readonly [Seq, Seq]): Awaitable<Collected>;
  /** Returns the position of the rewind that hides a position from the current view, or undefined. */
  hiddenBy(ref: Ref, seq: Seq): Awaitable<Seq | undefined>;
  /**
   * Returns the positions that no rewind hides, with the session as it was at a point (default: its head):
   * ranges with both ends included, oldest first. The cost grows with the number of rewinds only.
   */
  visible(ref: Ref, o?: { readonly at?: Point }): Awaitable<readonly (readonly [Seq, Seq])[]>;
  /** Reads the lineage in order, page by page like `read`. */
  lineage(query?: LineageQuery): Iterable<LineageLine> | AsyncIterable<LineageLine>;
  /** Appends a rewind: the tape then reads as if it ended at `to`, moved back to a settled point. */
  rewind(ref: Ref, to: Point, o?: WriteOptions & { mode?: string }): Awaitable<Rewound>;
  /**
   * Undoes the last rewind, or the one at a position, by a rewind to just before it.
   * @throws TAPE_BAD_POINT when the session has no such rewind of its own
   */
  unrewind(ref: Ref, o?: WriteOptions & { rewind?: Seq }): Awaitable<Rewound>;
  /**
   * @throws TAPE_BAD_STATUS for an unknown lifecycle; TAPE_BUSY when archiving a session with a live lease
   */
  setLifecycle(ref: Ref, lifecycle: Lifecycle): Awaitable<SessionInfo>;
  /**
   * Records the task state of a child. Only runs call this.
   * @throws TAPE_BAD_STATUS, TAPE_BUSY, TAPE_FENCED
   */
  setTask(ref: Ref, task: Task, o?: WriteOptions): Awaitable<SessionInfo>;
  /**
   * Adds an alias, another name for a session.
   * @throws TAPE_BAD_NAME; TAPE_EXISTS when it names another session
   */
  alias(alias: string, ref: Ref, reason: string): Awaitable<SessionInfo>;
  /**
   * Takes the session's lease, from an expired or dead owner too.
   * @throws TAPE_BUSY, with the owner in `data`
   */
  acquire(ref: Ref, owner: Owner, o?: { ttlMs?: number }): Awaitable<Lease>;
  /**
   * Heartbeat: extends a lease.
   * @throws TAPE_FENCED when another owner has taken the session over
   */
  extend(lease: Lease, o?: { ttlMs?: number }): Awaitable<Lease>;
  /** Returns whether a lease can still write: false after its release or a takeover by another owner. */
  holds(lease: Lease): Awaitable<boolean>;
  /** Returns a number that changes with every commit of any process. Cheap enough to poll. */
  changes(): Awaitable<number>;
  /** Lists the owners of all live leases. */
  owners(): Awaitable<readonly SessionOwner[]>;
  /**
   * Releases a lease. Returns false, and keeps the lease, when the inbox holds items that the owner can drain
   * now; items that only a run can process count with `inputs: true`.
   */
  release(lease: Lease, o?: { readonly inputs?: boolean }): Awaitable<boolean>;
  /**
   * Posts an item to a session's inbox, for the owner of the session.
   * @throws TAPE_KEY_CONFLICT; TAPE_BAD_ENTRY; TAPE_ARCHIVED for input to an archived session
   */
  post(ref: Ref, item: InboxDraft): Awaitable<Posted>;
  inbox(ref: Ref): Awaitable<readonly InboxItem[]>;
  /**
   * Applies and removes inbox items in one transaction; returns how many. First appends the entries of
   * `taken`, in order, in place of those items. Other items that only a run can process stay in the inbox.
   */
  drain(lease: Lease, handled?: readonly HandledItem[], o?: DrainOptions): Awaitable<number>;
  /** Drains the inbox of a session without a live lease; returns false, and does nothing, if it has one. */
  drainOwnerless(ref: Ref): Awaitable<boolean>;
  /** Saves chunks of live answers, for other processes to read. They survive a kill, but not a power loss. */
  saveChunks(streams: readonly LiveStream[]): Awaitable<void>;
  /** Lists the runs of a session that have saved chunks: they are live, or their process died. */
  liveRuns(ref: Ref): Awaitable<readonly string[]>;
  /** Returns the saved chunks of a run, from index `from` (default 0). */
  chunks(ref: Ref, run: string, from?: number): Awaitable<readonly StreamChunk[]>;
  /** Appends a run's answer, if `batch` has entries, and drops its chunks, in one transaction. */
  settle(run: string, batch: readonly Draft[], o: { readonly lease: Lease }): Awaitable<Appended>;
  /** Creates a session that is invisible until `publish`. The same name continues an unfinished import. */
  stage(name: string, init?: StageInit): Awaitable<SessionInfo>;
  /** Appends to a staged session, given its id. */
  appendStaged(id: string, batch: readonly Draft[]): Awaitable<Appended>;
  /** Makes staged sessions visible and records their lineage, in one transaction. Idempotent. */
  publish(ids: readonly string[]): Awaitable<readonly SessionInfo[]>;
  /**
   * Returns the bytes of a `BlobRef`: all of them, or the half-open range `[from, to)`.
   * @throws TAPE_NO_BLOB, TAPE_CORRUPT
   */
  blob(hash: string, range?: { readonly from?: number; readonly to?: number }): Awaitable<Uint8Array>;
  /** Finds entries that contain a text, newest first. The text is literal: it has no query syntax. */
  search(query: SearchQuery): Awaitable<readonly Hit[]>;
  /** Erases an entry's content and records a redaction with the reason. The hash chain still verifies. */
  redact(ref: Ref, point: Point, reason: string, o?: WriteOptions): Awaitable<Redacted>;
  /** Verifies the hash chain of a session; without `ref`, all tapes and the lineage. Yields each problem. */
  verify(ref?: Ref): Iterable<Problem> | AsyncIterable<Problem>;
}
