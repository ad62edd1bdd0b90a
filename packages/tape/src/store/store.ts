/**
 * Stores. `TapeStore` below is what all of them promise: ten groups of methods, one for each thing that a home of
 * tapes has. `sqlite.ts` implements it with one file for each group (`entries.ts` is `store.entries`), each method by
 * an act of the other rooms in one transaction, on the `connection.ts` that they share; `options.ts` has the options of
 * the methods; `bundles.ts` is a group of this store alone; the rest opens, migrates, backs up and checks the database
 * file. Imports `bundle`, `check`, `inbox` and what
 * lies below.
 */
import type { Problem } from '../check/problem.ts';
import type { Beside } from '../db/db.ts';
import type { Awaitable, Draft, Entry, Seq } from '../entry/entry.ts';
import type { Forked } from '../fork/fork.ts';
import type { ForkRequest } from '../fork/request.ts';
import type { Redacted, RedactPreview } from '../history/redact.ts';
import type { Rewound } from '../history/rewind.ts';
import type { ResolvedHow } from '../identity/identity.ts';
import type { InboxDraft, InboxItem } from '../inbox/inbox.ts';
import type { GraphReceipt, LineageLine } from '../lineage/line.ts';
import type { LinkReceipt } from '../lineage/link.ts';
import type { LinkRequest } from '../lineage/outbox.ts';
import type { LineageQuery } from '../lineage/read.ts';
import type { Collected } from '../merge/collect.ts';
import type { MergeDraft, MergeRequest } from '../merge/plan.ts';
import type { Merged } from '../merge/receipt.ts';
import type { Owner } from '../owner.ts';
import type { ProgressOptions } from '../progress.ts';
import type { SearchQuery, SearchResult } from '../search/search.ts';
import type { UnfinishedImport, UnfinishedQuery } from '../session/discard.ts';
import type { Purged, PurgePreview } from '../session/purge.ts';
import type { SessionChange, SessionInit } from '../session/session.ts';
import type { StageInit } from '../session/stage.ts';
import type { Appended } from '../tape/append.ts';
import type { CallsQuery, ModelCalls } from '../tape/calls.ts';
import type { LiveQuery, LiveRun, LiveStream } from '../tape/chunks.ts';
import type { SessionInfo } from '../tape/info.ts';
import type { SessionRange } from '../tape/interval.ts';
import type { Lease, SessionOwner } from '../tape/lease.ts';
import type { SessionQuery, Unfinished } from '../tape/listing.ts';
import type { Point } from '../tape/point.ts';
import type { Ref } from '../tape/tape.ts';
import type {
  AppendOptions,
  ByteRange,
  DiscardOptions,
  DrainOptions,
  EntryQuery,
  ErasureOptions,
  LeaseOptions,
  LinkOptions,
  RangeQuery,
  ReleaseOptions,
  ResolveOptions,
  RewindOptions,
  UnrewindOptions,
  ViewQuery,
  WriteOptions,
} from './options.ts';
import type { ForkPreview, MergePreview } from './preview.ts';

/** Items that a method yields page by page. No statement or lock stays open between pages. */
export type Sequence<T> = Iterable<T> | AsyncIterable<T>;

/**
 * The tapes of one home. `SqliteTapeStore` returns plain values; other stores may return promises.
 * @throws TAPE_NO_SESSION from every method that takes a session, when no session has that name, alias or id;
 * TAPE_BAD_OPTION from every method that takes an object of options, for a field that does not exist
 *
 * @example
 * ```ts
 * import { openTapeStore, type TapeStore, user } from '@tapedeck/tape';
 *
 * // Every store can answer later: await what its methods return, and read sequences with `for await`.
 * async function say(store: TapeStore, session: string, text: string): Promise<number> {
 *   await store.sessions.open(session);
 *   return (await store.entries.append(session, [user(text)])).to;
 * }
 *
 * console.log(await say(openTapeStore(':memory:'), 'main', 'Plan the release.')); // 2
 * ```
 */
export interface TapeStore extends AsyncDisposable {
  /** The sessions: each has one tape, a name and a state. */
  readonly sessions: Sessions;
  /** The entries of tapes. They are appended and read, never changed. */
  readonly entries: Entries;
  /** What a model sees of a session. */
  readonly views: Views;
  /** Rewinds: entries after which a tape reads as if it ended earlier. */
  readonly history: History;
  /** Who came from where: forks, merges, and the lines that record them. */
  readonly lineage: Lineage;
  /** The right to write a session. One owner has it at a time. */
  readonly leases: Leases;
  /** What others want written to a session, or done by its owner. */
  readonly inbox: Inbox;
  /** Answers that are not complete yet. They survive a kill, but not a power loss. */
  readonly live: Live;
  /** Sessions that are written in many transactions and appear in one. */
  readonly imports: Imports;
  /** The sessions of keys that say who sends a message. */
  readonly identities: Identities;
  /**
   * Verifies the hash chain of a session; without `ref`, all tapes and the lineage. Yields each problem. `onProgress`
   * receives how many entries were verified.
   */
  verify(ref?: Ref, o?: ProgressOptions): Sequence<Problem>;
  /** The realm of the sessions that it finds by their names. */
  readonly base: string;
  /**
   * Returns the same store for the sessions of another realm: it finds these by their names, and creates sessions there.
   * Closing one closes all.
   * @throws TAPE_BAD_NAME for what cannot be a realm
   */
  inRealm(base: string): TapeStore;
  /**
   * Returns a number that changes with every commit of any process, on a server soon after it. Cheap enough to poll: it
   * sends nothing. With the ULID of a session, it changes at least when something is posted to its inbox or taken from it,
   * or its lease is taken or ends: what its owner has to look at.
   */
  changes(session?: string): Awaitable<number>;
  /**
   * How long a synchronous store blocks the thread while another process holds the write lock, in
   * milliseconds. It can change at any time; with 0 a call gives up after about 20 ms. Asynchronous stores
   * leave it undefined.
   */
  lockWaitMs?: number;
  /**
   * How long the runtime lets a lease live without a heartbeat, in milliseconds. Default: `leaseTtlMs`. Where owners are on
   * several machines no other sees that one has died, so that a shorter time is how soon others continue.
   */
  readonly leaseMs?: number;
}

/**
 * The sessions of a store, `store.sessions`: creates, finds, lists and changes them.
 *
 * @example
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.sessions.update('main', { lifecycle: 'archived' });
 * console.log(store.sessions.find('main')?.lifecycle); // archived
 * ```
 */
export interface Sessions {
  /**
   * Returns the session of a name, an alias or an id, and creates one of that name if none exists; `created` says
   * which. A deleted session has no name: the new one is the next incarnation.
   * @throws TAPE_BAD_NAME; TAPE_EXISTS when the name reads as a point of a session, or differs from a name or an
   * alias in use only by case or Unicode form
   */
  open(
    name: string,
    init?: SessionInit,
  ): Awaitable<SessionInfo & GraphReceipt & { readonly created: boolean }>;
  /** Returns a session, or undefined when no session has that name, alias or id. */
  find(ref: Ref): Awaitable<SessionInfo | undefined>;
  /** Lists sessions, newest first; with `parent` or `after`, in order of creation. */
  list(query?: SessionQuery): Awaitable<readonly SessionInfo[]>;
  /** Counts the forks of a session that have not ended, and all that are below it or, with `root`, below that one. */
  unfinished(ref: Ref, root?: Ref): Awaitable<Unfinished>;
  /**
   * Adds up the model calls that the own entries of sessions record, by session in order of creation and by model in the
   * order of first use. Inherited calls count where they were recorded. The sums are stored: no entry is read.
   */
  calls(query?: CallsQuery): Awaitable<readonly ModelCalls[]>;
  /**
   * Changes the state of a session, or adds a name. All of a change is done, or nothing.
   * @throws TAPE_BAD_STATUS for an unknown lifecycle or task, and for `purged`; TAPE_BAD_NAME; TAPE_EXISTS when the
   * alias names another session, is the session's name or id, or was given with another reason, or when something else
   * has a name of a deleted session that would be brought back; TAPE_ARCHIVED for a new name of a deleted session, and
   * for one that was purged; TAPE_BUSY for a task, a name, or an end of a session with a live lease; TAPE_FENCED
   */
  update(ref: Ref, change: SessionChange, o?: WriteOptions): Awaitable<SessionInfo & GraphReceipt>;
  /**
   * Erases the content of all own entries of a session, and of the sessions in which its summaries and its title were
   * written, and frees its names. A redaction for each entry records the reason: the hash chain still verifies.
   * `SqliteTapeStore` also writes its file anew; see `Purged.wiped`.
   * @throws TAPE_CONFLICT while forks inherit its entries (`data.forks`); TAPE_UNSETTLED while calls have no result;
   * TAPE_BUSY, TAPE_FENCED
   */
  purge(ref: Ref, reason: string, o?: WriteOptions): Awaitable<Purged & GraphReceipt>;
  /**
   * Returns what `purge` would erase, and what may still contain it then. Reads only.
   * @throws as `purge`
   */
  previewPurge(ref: Ref): Awaitable<PurgePreview>;
}

/**
 * The entries of tapes, `store.entries`: appends, reads, finds and redacts them.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), user('Add a changelog.')]);
 * for (const { seq, kind } of store.entries.read('main', { kind: 'message' })) console.log(seq, kind);
 * // 2 message
 * // 3 message
 * console.log(store.entries.search({ text: 'changelog' }).hits[0]?.seq); // 3
 * ```
 */
export interface Entries {
  /**
   * Appends a batch in one transaction, all or nothing. Repeating a batch with the same keys adds nothing.
   * @throws TAPE_BAD_ENTRY, TAPE_KEY_CONFLICT, TAPE_STALE_HEAD, TAPE_BUSY, TAPE_FENCED
   */
  append(ref: Ref, batch: readonly Draft[], o?: AppendOptions): Awaitable<Appended>;
  /** Reads entries in ascending order. */
  read(ref: Ref, query?: EntryQuery): Sequence<Entry>;
  /**
   * Resolves a point to a position.
   * @throws TAPE_NO_ANCHOR, with near names in `data`; TAPE_NO_SEQ; TAPE_BAD_POINT
   */
  resolve(ref: Ref, point: Point): Awaitable<Seq>;
  /**
   * Returns the bytes of a `BlobRef`: all of them, or the half-open range `[from, to)`.
   * @throws TAPE_NO_BLOB, TAPE_CORRUPT
   */
  blob(hash: string, range?: ByteRange): Awaitable<Uint8Array>;
  /**
   * Finds entries that contain a text, newest first. The text is literal: it has no query syntax. Of many entries that
   * are not indexed yet a search leaves some out, and returns how many, unless `all` is true.
   */
  search(query: SearchQuery): Awaitable<SearchResult>;
  /**
   * Erases an entry's content and records a redaction with the reason, on the tape that owns the entry. The
   * hash chain still verifies. `SqliteTapeStore` also writes its file anew; see `Redacted.logEmptied`.
   * @throws TAPE_BAD_ENTRY, TAPE_UNSETTLED, TAPE_BUSY, TAPE_FENCED, TAPE_NO_ANCHOR, TAPE_NO_SEQ
   */
  redact(ref: Ref, point: Point, reason: string, o?: ErasureOptions): Awaitable<Redacted>;
  /** Redacts entries in one transaction, all or none; the file is written anew once. */
  redact(
    ref: Ref,
    points: readonly Point[],
    reason: string,
    o?: ErasureOptions,
  ): Awaitable<readonly Redacted[]>;
  /**
   * Returns what `redact` would erase, and what may still contain it then. Reads only.
   * @throws as `redact`
   */
  previewRedact(ref: Ref, point: Point): Awaitable<RedactPreview>;
}

/**
 * What a model sees of a session, `store.views`.
 *
 * @example
 * ```ts
 * import { openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * console.log(view(store.views.entries('main')).messages.length); // 1
 * ```
 */
export interface Views {
  /**
   * Reads only the entries that `view` needs for a policy (default `last-boundary`), as of a point.
   * @throws TAPE_BAD_POLICY, TAPE_NO_ANCHOR, TAPE_NO_SEQ, TAPE_BAD_POINT
   */
  entries(ref: Ref, query?: ViewQuery): Sequence<Entry>;
  /**
   * Divides the positions of a session into ranges, oldest first: those that readers see, and those that a
   * rewind hides. The cost grows with the number of rewinds only.
   */
  ranges(ref: Ref, query?: RangeQuery): Awaitable<readonly SessionRange[]>;
}

/**
 * Rewinds, `store.history`: a tape reads as if it ended earlier. No entry is removed.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { to } = store.entries.append('main', [user('Plan the release.')]);
 * store.entries.append('main', [user('Add a changelog.')]);
 * console.log(store.history.rewind('main', to).hidden); // 1
 * console.log(store.history.unrewind('main').shown); // 1
 * ```
 */
export interface History {
  /** Appends a rewind: the tape then reads as if it ended at `to`, moved back to a settled point. */
  rewind(ref: Ref, to: Point, o?: RewindOptions): Awaitable<Rewound>;
  /**
   * Undoes the last rewind, or the one at a position, by a rewind to just before it.
   * @throws TAPE_BAD_POINT when the session has no such rewind of its own
   */
  unrewind(ref: Ref, o?: UnrewindOptions): Awaitable<Rewound>;
}

/**
 * Forks and merges, `store.lineage`, and the lines that record them.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * store.lineage.fork('main', { name: 'tests' });
 * store.entries.append('tests', [assistant('All tests pass.')]);
 * console.log(store.lineage.merge('tests').state); // merged
 * ```
 */
export interface Lineage {
  /** Reads the lines of the lineage in order. */
  read(query?: LineageQuery): Sequence<LineageLine>;
  /**
   * Creates a child session by reference, without writing to the parent. The same `key` gives the same child.
   * @throws TAPE_NO_ANCHOR, TAPE_BAD_POINT, TAPE_BAD_NAME, TAPE_EXISTS, TAPE_KEY_CONFLICT; TAPE_BUSY with
   * `whenIdle`, TAPE_STALE_HEAD with `expectHead`, TAPE_BAD_ENTRY for what the child cannot begin with
   * @param beside a statement that the database commits with a new child, or neither of them: a queue in the same database
   *   gets the order to run it. It only looks at what it is given, and can be called more than once. A store in a file refuses it
   */
  fork(
    parent: Ref,
    request?: ForkRequest,
    beside?: (forked: Forked) => Beside | undefined,
  ): Awaitable<Forked>;
  /** Returns what `fork` would write and return, and throws what it would throw. Writes nothing. */
  previewFork(parent: Ref, request?: ForkRequest): Awaitable<ForkPreview>;
  /**
   * Appends a child's result to its parent's tape. Repeating the merge returns its receipt.
   * @throws TAPE_BUSY, TAPE_UNSETTLED, TAPE_CONFLICT, TAPE_ARCHIVED, TAPE_FENCED
   */
  merge(child: Ref, request?: MergeRequest, o?: WriteOptions): Awaitable<Merged>;
  /** Merges several children in one transaction, all or nothing, in the given order. */
  merge(drafts: readonly MergeDraft[], o?: WriteOptions): Awaitable<readonly Merged[]>;
  /**
   * Returns what `merge` would write and return, with its conflicts; the receipt of the earlier merge, if one
   * covers the child's head; and as `refusal` the error that `merge` would throw. Writes nothing.
   * @throws TAPE_BAD_STATUS; TAPE_CONFLICT when the child was not forked from the target
   */
  previewMerge(child: Ref, request?: MergeRequest): Awaitable<MergePreview>;
  /**
   * Reads a child's result, usage and artifact from its own entries; merges, lists and tools all use this.
   * Default range: the positions that a merge into the parent would cover or, if none followed it, that the
   * last merge covered.
   */
  collect(child: Ref, range?: readonly [Seq, Seq]): Awaitable<Collected>;
  /**
   * Puts a session under another one in the tree, or makes it a root (`null`), with a line `link`. What it inherits, and
   * where its work is merged, stays as it is. Linking it again in the same way writes nothing, and a derived edge never
   * replaces one that is not derived.
   * @throws TAPE_CONFLICT when the parent is below the session
   */
  link(child: Ref, parent: Ref | null, request?: LinkRequest): Awaitable<LinkReceipt>;
  /**
   * Takes the last link of a session back: the edge before it counts again. Undoing again does it again.
   * @throws TAPE_CONFLICT when the session has no link
   */
  unlink(child: Ref): Awaitable<LinkReceipt>;
}

/**
 * The right to write a session, `store.leases`. One owner has it at a time.
 *
 * @example
 * ```ts
 * import { openTapeStore, processOwner } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const lease = store.leases.acquire('main', processOwner('editor'));
 * console.log(store.leases.holds(lease), store.leases.list()[0]?.session); // true main
 * store.leases.release(lease);
 * console.log(store.leases.holds(lease)); // false
 * ```
 */
export interface Leases {
  /**
   * Takes the session's lease, from an expired or dead owner too.
   * @throws TAPE_BUSY, with the owner in `data`
   */
  acquire(ref: Ref, owner: Owner, o?: LeaseOptions): Awaitable<Lease>;
  /**
   * Heartbeat: extends a lease.
   * @throws TAPE_FENCED when another owner has taken the session over
   */
  extend(lease: Lease, o?: LeaseOptions): Awaitable<Lease>;
  /** Returns whether a lease can still write: false after its release or a takeover by another owner. */
  holds(lease: Lease): Awaitable<boolean>;
  /** Lists the owners of all live leases. */
  list(): Awaitable<readonly SessionOwner[]>;
  /**
   * Releases a lease. Returns false, and keeps the lease, when the inbox holds items that the owner can drain
   * now; items that only a run can process count with `inputs: true`.
   */
  release(lease: Lease, o?: ReleaseOptions): Awaitable<boolean>;
}

/**
 * What other processes want written to a session, or done by its owner: `store.inbox`.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.inbox.post('main', { body: { type: 'input', drafts: [user('Add a changelog.')] } });
 * console.log(store.inbox.list('main').length); // 1
 * ```
 */
export interface Inbox {
  /**
   * Posts an item to a session's inbox, for the owner of the session.
   * @throws TAPE_KEY_CONFLICT; TAPE_BAD_ENTRY; TAPE_ARCHIVED for input to an archived session
   */
  post(ref: Ref, item: InboxDraft): Awaitable<Posted>;
  /** Lists the items of a session's inbox, oldest first. */
  list(ref: Ref): Awaitable<readonly InboxItem[]>;
  /**
   * Applies and removes the items of a session's inbox in one transaction, or, in a store on a server, one by one after
   * those in `taken`; returns how many. Items that only a run can process stay in the inbox, except those in `taken`. The
   * owner passes its lease. For a session without a live lease, pass the session, without options; if it has a lease,
   * nothing is done and the result is undefined.
   */
  drain(owned: Lease | Ref, o?: DrainOptions): Awaitable<number | undefined>;
}

/**
 * The chunks of answers that are not complete yet, `store.live`.
 *
 * @example
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const chunks = [{ index: 0, chunk: { type: 'text-delta', id: '0', delta: 'Test,' } }];
 * store.live.save([{ session: 'main', run: 'run-1', chunks }]);
 * console.log(store.live.read('main')[0]?.chunks.length); // 1
 * ```
 */
export interface Live {
  /** Saves chunks of live answers, for other processes to read. */
  save(streams: readonly LiveStream[]): Awaitable<void>;
  /**
   * Returns the runs of a session that have saved chunks, and the chunks. Such a run is live, or its process
   * died. `entries.append` with `settles` drops the chunks of a run.
   */
  read(ref: Ref, query?: LiveQuery): Awaitable<readonly LiveRun[]>;
}

/**
 * Sessions that are written in many transactions and appear in one: `store.imports`.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * const { id } = store.imports.stage('imported');
 * store.imports.append(id, [user('Plan the release.')]);
 * console.log(store.sessions.list().length); // 0
 * store.imports.publish([id]);
 * console.log(store.sessions.list().length); // 1
 * ```
 */
export interface Imports {
  /** Creates a session that is invisible until `publish`. The same name continues an unfinished import. */
  stage(name: string, init?: StageInit): Awaitable<SessionInfo>;
  /** Appends to a staged session, given its id. Only `publish` waits for the disk: a power loss before it can take this back. */
  append(id: string, batch: readonly Draft[]): Awaitable<Appended>;
  /** Makes staged sessions visible and records their lineage, in one transaction. Idempotent. */
  publish(ids: readonly string[]): Awaitable<readonly SessionInfo[]>;
  /**
   * The staged sessions, in the order in which they were begun: those that an import writes now, and those that it left when
   * it was killed.
   */
  unfinished(query?: UnfinishedQuery): Awaitable<readonly UnfinishedImport[]>;
  /**
   * Erases the content of staged sessions for good, given their ids, and their titles, as `sessions.purge` does, in transactions
   * of 20,000 entries. An import that still writes one gets TAPE_NO_SESSION. Idempotent. A redaction, or a purge, does so with
   * those whose process has ended, and those that have a copy of what it erases. Also tries again to write the file anew where
   * an erasure before could not, with no ids too.
   * @throws TAPE_NO_SESSION for an id that was never staged, TAPE_EXISTS for a session that is published
   */
  discard(ids: readonly string[], o?: DiscardOptions): Awaitable<DiscardedImports>;
}

/** The receipt of `imports.discard`. */
export interface DiscardedImports {
  /** How many entries lost their content. */
  readonly erased: number;
  /** Whether nothing of the content is left in the file and its WAL: see `Purged.wiped`. */
  readonly wiped: boolean;
}

/**
 * The sessions of keys that a program makes of who sends a message: `store.identities`. A key such as `dm:entity_mom` is
 * the name or an alias of its session.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.identities.resolve('dm:imessage:+1555');
 * store.entries.append('dm:imessage:+1555', [user('Hello')]);
 * const { session, how } = store.identities.resolve('dm:entity_mom', { address: 'dm:imessage:+1555' });
 * console.log(session.session, how); // dm:imessage:+1555 promoted
 * ```
 */
export interface Identities {
  /**
   * Returns the session of a key: the one of that name, one that stands for the key, the one of its address, which then
   * stands for it, or a new one. All in one transaction; again, it returns the same session and changes nothing.
   * @throws TAPE_BAD_NAME; TAPE_ARCHIVED when the session is archived; TAPE_NO_SESSION for `worker:ULID` without a session
   */
  resolve(key: string, o?: ResolveOptions): Awaitable<Resolved & GraphReceipt>;
  /** Returns what `resolve` would return, and undefined where it would create a session. Writes nothing. */
  find(key: string, o?: ResolveOptions): Awaitable<Resolved | undefined>;
  /**
   * Joins addresses with the key of an entity: the session with the most turns stands for all of them; the others stay as
   * they are, resolve to it, and are searched with it. Nothing of their tapes is merged. Again, it changes nothing.
   * @throws TAPE_BAD_OPTION without an address, and for the key as its own address; TAPE_CONFLICT for an address that is
   *   linked with another key (`data.linked`); TAPE_ARCHIVED when no session of them is active; TAPE_BAD_NAME, TAPE_EXISTS
   */
  link(key: string, addresses: readonly string[], o?: LinkOptions): Awaitable<Linked & GraphReceipt>;
  /**
   * Separates addresses from an entity; without any, all of them, and the key from its session. Each session receives the
   * messages of its own address again.
   * @throws TAPE_NO_SESSION; TAPE_CONFLICT for an address that is not linked with the key
   */
  unlink(key: string, addresses?: readonly string[]): Awaitable<Linked & GraphReceipt>;
  /** Lists what sessions stand for, in the order of their creation. */
  list(): Awaitable<readonly Identity[]>;
}

/** The session of a key. */
export interface Resolved {
  readonly session: SessionInfo;
  /**
   * `direct`: its name is the key; `alias`: it stands for the key; `promoted`: it was that of the address, and stands for
   * the key from now on; `created`: it is new.
   */
  readonly how: ResolvedHow;
}

/** What a session stands for. */
export interface Identity {
  /** The session that receives the messages. */
  readonly primary: SessionInfo;
  /** The sessions that keep their history and receive no more messages. */
  readonly quiet: readonly SessionInfo[];
  /** The keys that are aliases of the session. */
  readonly keys: readonly string[];
}

/** What a change of an identity left. */
export interface Linked extends Identity {
  /** False when everything was so before. */
  readonly changed: boolean;
  /** Whether no address had a session, so that one of the key was created. */
  readonly created: boolean;
}

/** The receipt of `inbox.post`. */
export interface Posted {
  /** Id of the inbox item; when the entries are already on the tape, the key they were posted under. */
  readonly id: string;
  /** The owner of the session's live lease, if it has one. */
  readonly owner?: Owner;
  /** The receipt of the append, when all entries are already on the tape. Nothing was posted then. */
  readonly appended?: Appended;
}
