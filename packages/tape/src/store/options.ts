import type { Seq } from '../entry/entry.ts';
import { type Fields, type KindName, type KnownFields, kindFault, optionFault } from '../entry/fields.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { DoneWork, ForkRequest } from '../fork/request.ts';
import type { HandledItem, InboxDraft } from '../inbox/inbox.ts';
import type { Intention, LinkRequest } from '../lineage/outbox.ts';
import type { LineageQuery } from '../lineage/read.ts';
import type { MergeDraft } from '../merge/plan.ts';
import type { Owner } from '../owner.ts';
import type { ProgressOptions } from '../progress.ts';
import type { SearchQuery } from '../search/search.ts';
import type { UnfinishedQuery } from '../session/discard.ts';
import type { Alias, SessionChange, SessionInit } from '../session/session.ts';
import type { StageInit } from '../session/stage.ts';
import type { CallsQuery } from '../tape/calls.ts';
import type { LiveQuery } from '../tape/chunks.ts';
import type { Lease } from '../tape/lease.ts';
import type { ReadQuery, SessionQuery } from '../tape/listing.ts';
import type { Point } from '../tape/point.ts';
import type { EntryQuery as RowQuery } from '../tape/read.ts';
import type { ViewPolicy } from '../view/policy.ts';

/** Selects entries of a session. */
export interface EntryQuery extends RowQuery {
  /** Only entries after this anchor or position. */
  readonly since?: Point;
}

/** Selects a part of a blob. */
export interface ByteRange {
  /** The first byte (default 0). */
  readonly from?: number;
  /** The byte after the last (default: the length). */
  readonly to?: number;
}

/** Selects the entries of a view. */
export interface ViewQuery {
  readonly policy?: ViewPolicy;
  /** The last position of the view (default: the head). */
  readonly at?: Point;
}

/** Selects ranges of a session. */
export interface RangeQuery {
  /** The session as it was at this point (default: its head). */
  readonly at?: Point;
  /** Only ranges that end at this position or after it: the first of them is the range of the position. */
  readonly from?: Seq;
}

/** Options of every method that writes to a session. */
export interface WriteOptions {
  /** The lease to write under. Without one, the call throws TAPE_BUSY while the session has a live lease. */
  readonly lease?: Lease | undefined;
}

/** Options of `entries.append`. */
export interface AppendOptions extends WriteOptions {
  /** Idempotency key of the batch: entries without their own key get `key`, `key#2`, … */
  readonly key?: string | undefined;
  /**
   * Hash (hex) of the head that the caller read.
   * @throws TAPE_STALE_HEAD when the session has another head.
   */
  readonly expectHead?: string | undefined;
  /**
   * Id of a run whose live answer the batch completes: its saved chunks are dropped in the same transaction.
   * The batch may then be empty.
   */
  readonly settles?: string | undefined;
}

/** Options of `entries.redact`. */
export interface ErasureOptions extends WriteOptions {
  /**
   * Whether to write the file anew at once (default true). What erases entries of many sessions leaves that to a last
   * `imports.discard`, which does it for all: it takes as long as the file is large.
   */
  readonly wipe?: boolean | undefined;
}

/** Options of `imports.discard`. */
export interface DiscardOptions {
  /**
   * Whether to write the file anew (default true). Without that, bytes of the content stay in the file until something is
   * erased for good, as is enough for what sessions have, too.
   */
  readonly wipe?: boolean | undefined;
}

/** Options of `history.rewind`. */
export interface RewindOptions extends WriteOptions {
  /** Why the session is rewound, for readers of the entry. */
  readonly mode?: string | undefined;
}

/** Options of `history.unrewind`. */
export interface UnrewindOptions extends WriteOptions {
  /** Position of the rewind to undo (default: the last). */
  readonly rewind?: Seq | undefined;
}

/** Options of `leases.acquire` and `leases.extend`. */
export interface LeaseOptions {
  /** How long the lease lives without a heartbeat, in milliseconds (default 30,000). */
  readonly ttlMs?: number | undefined;
}

/** Options of `leases.release`. */
export interface ReleaseOptions {
  /** Items that only a run can process also keep the lease. */
  readonly inputs?: boolean | undefined;
}

/** Options of `inbox.drain`. */
export interface DrainOptions {
  /** Entries that a run made of items. They are appended first, in order, in place of these items. */
  readonly taken?: readonly HandledItem[];
  /** Ids of items to keep in the inbox. */
  readonly later?: readonly string[];
}

/** Options of `identities.link`. */
export interface LinkOptions {
  /** Properties of the session, where one is created. */
  readonly init?: SessionInit | undefined;
}

/** Options of `identities.resolve` and `identities.find`. */
export interface ResolveOptions extends LinkOptions {
  /**
   * The key of the same sender without an identity: `dm:imessage:+1555` beside `dm:entity_mom`. A session of it that is
   * linked with nothing is promoted, or, where the key has a session already, linked with that.
   */
  readonly address?: string | undefined;
}

/** The type of each options object that a method of a store takes, by method. */
interface OptionsOf {
  'sessions.open': SessionInit;
  'sessions.list': SessionQuery;
  readSessions: ReadQuery;
  'sessions.calls': CallsQuery;
  'sessions.update': SessionChange;
  'entries.append': AppendOptions;
  'entries.read': EntryQuery;
  'entries.blob': ByteRange;
  'entries.search': SearchQuery;
  'entries.redact': ErasureOptions;
  'views.entries': ViewQuery;
  'views.ranges': RangeQuery;
  'history.rewind': RewindOptions;
  'history.unrewind': UnrewindOptions;
  'lineage.read': LineageQuery;
  'lineage.fork': ForkRequest;
  'lineage.merge': MergeDraft;
  'lineage.link': LinkRequest;
  'leases.acquire': LeaseOptions;
  'leases.release': ReleaseOptions;
  'inbox.post': InboxDraft;
  'inbox.drain': DrainOptions;
  'live.read': LiveQuery;
  'imports.stage': StageInit;
  'imports.unfinished': UnfinishedQuery;
  'imports.discard': DiscardOptions;
  'identities.resolve': ResolveOptions;
  'identities.link': LinkOptions;
  alias: Alias;
  lease: Lease;
  owner: Owner;
  intention: Intention;
  done: DoneWork;
  write: WriteOptions;
  progress: ProgressOptions;
}

const listFields: Fields<SessionQuery> = {
  kind: 'text',
  lifecycle: true,
  parent: 'text',
  roots: 'flag',
  prefix: 'text',
  idPrefix: 'text',
  leftFrom: 'count',
  deleted: 'flag',
  key: 'text',
  since: 'count',
  under: 'text',
  unfinished: 'flag',
  pending: 'flag',
  all: 'flag',
  allRealms: 'flag',
  after: true,
  limit: 'count',
  titles: 'flag',
  counts: 'flag',
};

/** The fields of every options object that a method of a store takes, by method. */
export const fieldsOf: { readonly [M in keyof OptionsOf]: Fields<OptionsOf[M]> } = {
  'sessions.open': { kind: 'text', title: 'text', ephemeral: 'flag', settings: 'object' },
  'sessions.list': listFields,
  readSessions: {
    ...listFields,
    order: ['last', 'created', 'name', 'messages', 'tokens'],
    offset: 'count',
    ids: 'texts',
  },
  'sessions.calls': { session: 'text', tree: 'flag' },
  'sessions.update': { lifecycle: true, task: true, alias: 'object', unalias: 'object', name: 'text' },
  'entries.append': { lease: 'object', key: 'text', expectHead: 'text', settles: 'text' },
  'entries.read': {
    from: 'count',
    to: 'count',
    since: true,
    kind: 'text',
    name: 'text',
    namePrefix: 'text',
    key: 'text',
    calls: 'flag',
    own: 'flag',
    last: 'count',
    limit: 'count',
  },
  'entries.blob': { from: 'count', to: 'count' },
  'entries.search': {
    text: 'text',
    session: 'text',
    kind: 'text',
    where: 'list',
    limit: 'count',
    all: 'flag',
    deleted: 'flag',
  },
  'entries.redact': { lease: 'object', wipe: 'flag' },
  'views.entries': { policy: true, at: true },
  'views.ranges': { at: true, from: 'count' },
  'history.rewind': { lease: 'object', mode: 'text' },
  'history.unrewind': { lease: 'object', rewind: 'count' },
  'lineage.read': { session: 'text', types: 'texts', from: 'count' },
  'lineage.fork': {
    inherit: true,
    cut: true,
    name: 'text',
    key: 'text',
    intention: 'object',
    kind: 'text',
    deliver: ['merge', 'merge+turn', 'notify', 'tool-result'],
    spawnCall: 'text',
    settings: 'object',
    terms: 'object',
    asked: 'object',
    worktree: 'object',
    title: 'text',
    ephemeral: 'flag',
    whenIdle: 'flag',
    whereShown: 'flag',
    expectHead: 'text',
    first: 'list',
    done: 'object',
  },
  'lineage.merge': {
    child: 'text',
    into: 'text',
    strategy: true,
    text: 'text',
    status: true,
    reason: 'text',
    timestamp: 'text',
    received: 'count',
    context: 'flag',
    onConflict: ['report', 'refuse'],
    force: 'flag',
    charsMax: 'count',
    notify: 'flag',
    unlessMerged: 'count',
    at: ['step', 'idle'],
    usage: 'object',
    asked: 'object',
    written: 'texts',
  },
  'lineage.link': { type: 'text', derived: 'flag', evidence: 'text', call: 'text', seq: 'count' },
  'leases.acquire': { ttlMs: 'duration' },
  'leases.release': { inputs: 'flag' },
  'inbox.post': { body: true, mode: 'text', source: 'text', key: 'text' },
  'inbox.drain': { taken: 'list', later: 'texts' },
  'live.read': { run: 'text', from: true },
  'imports.stage': { kind: 'text', title: 'text', ephemeral: 'flag', settings: 'object', keys: 'texts' },
  'imports.unfinished': { session: 'text', allRealms: 'flag' },
  'imports.discard': { wipe: 'flag' },
  'identities.resolve': { address: 'text', init: 'object' },
  'identities.link': { init: 'object' },
  alias: { name: 'text', reason: 'text' },
  intention: { nextSteps: 'text', contextSummary: 'text', triggerOnComplete: 'text' },
  done: { drafts: 'list', task: true },
  write: { lease: 'object' },
  progress: { onProgress: true },
  lease: { session: 'text', id: 'text', owner: 'text', epoch: 'count', expiresAt: 'count' },
  owner: { id: 'text', pid: 'count', pidStart: 'text', bootId: 'text', pidNamespace: 'text', host: 'text' },
};

/**
 * Refuses an argument of another kind.
 * @param what the argument: `the lease`
 * @throws TAPE_BAD_OPTION
 */
export function assertArgument(value: unknown, kind: KindName, act: string, what: string): void {
  const words = kindFault(value, kind);
  if (words !== undefined)
    throw new TapeError('TAPE_BAD_OPTION', `cannot ${act}: ${what} must be ${words}`, { data: { near: [] } });
}

/**
 * Refuses options with a field that does not exist, or a value that a field cannot have; both would otherwise
 * be ignored.
 * @param act what cannot be done: `append to`
 * @param to the session, or other object, of the act; a function is called for an error alone
 * @throws TAPE_BAD_OPTION; `data.field` names the field, `data.near` has the nearest names
 */
export function assertOptions(
  options: object,
  known: KnownFields,
  act: string,
  to?: string | (() => string),
): void {
  const fault = optionFault(options, known);
  if (fault === undefined) return;
  const { why, ...data } = fault;
  const what = to === undefined ? act : `${act} ${quote(String(typeof to === 'function' ? to() : to))}`;
  throw new TapeError('TAPE_BAD_OPTION', `cannot ${what}: ${why}`, { data });
}
