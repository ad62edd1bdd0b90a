import { examine, type Finding, rebuildBatches } from '../check/doctor.ts';
import { type Sources, systemSources } from '../clock.ts';
import { crashPoint } from '../crash-point.ts';
import { encodeDraft } from '../entry/encode.ts';
import { type Draft, type Meta, normalise, type Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import type { Json } from '../entry/json.ts';
import { parseName } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { type Forked, forkTape } from '../fork/fork.ts';
import type { ForkRequest } from '../fork/request.ts';
import { emptyLog, ownerOfSeq, type Redacted, redactEntry } from '../history/redact.ts';
import { type Rewound, rewindTape, unrewindTape } from '../history/rewind.ts';
import {
  drainInbox,
  drainInPlaceOfOwner,
  type HandledItem,
  type InboxDraft,
  takeItems,
  tapesWithInbox,
} from '../inbox/inbox.ts';
import type { Journal } from '../lineage/line.ts';
import { drainOutbox } from '../lineage/outbox.ts';
import { mergeTapes } from '../merge/merge.ts';
import { type MergeDraft, type MergeRequest, planMerge } from '../merge/plan.ts';
import type { Merged } from '../merge/receipt.ts';
import { type Owner, ownerOf } from '../owner.ts';
import { dropIndex, type Hit, type SearchQuery, searchEntries, updateIndex } from '../search/search.ts';
import { aliasTape } from '../session/alias.ts';
import { ensureSession, type SessionInit, setLifecycle, setTask } from '../session/session.ts';
import { appendStaged, publishTapes, type StageInit, stageTape } from '../session/stage.ts';
import type { Db } from '../sqlite/sqlite.ts';
import {
  type Appended,
  receipt,
  repeatedOnly,
  repetitions,
  type Writer,
  writeEncoded,
  writeEntries,
} from '../tape/append.ts';
import { dropChunks, type LiveStream, saveChunks } from '../tape/chunks.ts';
import { infoOf, type SessionInfo } from '../tape/info.ts';
import {
  acquireLease,
  extendLease,
  type Lease,
  liveLease,
  liveOwners,
  releaseLease,
  type SessionOwner,
  writeEpoch,
} from '../tape/lease.ts';
import { type Point, resolvePoint } from '../tape/point.ts';
import { postItem } from '../tape/post.ts';
import { type Lifecycle, type Ref, type TapeRow, type Task, tapeById, tapeByName } from '../tape/tape.ts';
import { backupTo } from './backup.ts';
import { type OpenOptions, openDatabase } from './open.ts';
import { type ForkPreview, type MergePreview, previewFork, previewMerge } from './preview.ts';
import { SqliteTapeReader } from './reader.ts';
import type { AppendOptions, DrainOptions, Posted, TapeStore, WriteOptions } from './store.ts';

export interface StoreOptions extends OpenOptions, Partial<Sources> {
  /** Prefix of tape names: `tape` (default) gives `tape:main`. */
  readonly base?: string;
  /** The journal of `session_graph.jsonl`. Without one, the lineage stays in the database. */
  readonly journal?: Journal;
  /**
   * How long an act blocks the thread to wait for the write lock of another process, in milliseconds (default
   * 15,000). With 0 it gives up after 20 ms, for callers that retry on a timer. Opening itself always waits
   * for the default time.
   */
  readonly lockWaitMs?: number;
}

/**
 * Opens the tapes of one SQLite file; creates the file if it does not exist. `:memory:` is the same engine
 * without a file. Opening for writing first updates the graph file and drains inboxes without an owner.
 * @throws TAPE_CANNOT_OPEN, TAPE_UNSAFE_PLACE, TAPE_SCHEMA_NEWER, TAPE_NOT_A_TAPE, TAPE_CORRUPT,
 * GRAPH_DIVERGED; TAPE_SCHEMA_OLDER when opened for reading only
 */
export function openTapeStore(path: string, o: StoreOptions = {}): SqliteTapeStore {
  const db = openDatabase(path, o);
  try {
    const store = new SqliteTapeStore(db, o);
    if (o.readonly !== true) store.catchUp();
    if (o.lockWaitMs !== undefined) store.lockWaitMs = o.lockWaitMs;
    return store;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** The tapes of one SQLite file. Synchronous: a method returns after its COMMIT. */
export class SqliteTapeStore extends SqliteTapeReader implements TapeStore {
  readonly #writer: Writer;
  readonly #journal: Journal | undefined;
  readonly #readonly: boolean;

  /** @internal Use `openTapeStore`. */
  constructor(db: unknown, { base = 'tape', journal, readonly = false, ...sources }: StoreOptions) {
    super(db as Db, parseName(base));
    this.#writer = { db: this.db, sources: systemSources(sources) };
    this.#journal = journal;
    this.#readonly = readonly;
  }

  /** See `StoreOptions.lockWaitMs`. It can change at any time. */
  get lockWaitMs(): number {
    return this.db.lockWaitMs;
  }

  set lockWaitMs(ms: number) {
    this.db.lockWaitMs = ms;
  }

  session(name: string, init: SessionInit = {}): SessionInfo & { readonly created: boolean } {
    const existing = tapeByName(this.db, this.realm, name);
    if (existing !== undefined && existing.lifecycle !== 'staging')
      return { ...infoOf(existing), created: false };
    const { tape, created } = this.db.writeThrough(() => ensureSession(this.#writer, this.realm, name, init));
    if (created) this.#drainOutbox();
    return { ...infoOf(tape), created };
  }

  append(ref: Ref, batch: readonly Draft[], { lease, key, expectHead }: AppendOptions = {}): Appended {
    // Encodes before taking the lock, since that is most of the work.
    const drafts = keyed(batch.flatMap(normalise), key).map(encodeDraft);
    if (drafts.length === 0) throw new TapeError('TAPE_BAD_ENTRY', 'cannot append: the batch is empty');
    return this.db.write(() => {
      const tape = this.need(ref);
      const repeated = repetitions(this.#writer, tape, drafts);
      const before = repeatedOnly(tape, repeated);
      if (before !== undefined) return before;
      const epoch = this.#epoch(tape, lease);
      if (expectHead !== undefined && expectHead !== hex(tape.head_hash))
        throw new TapeError(
          'TAPE_STALE_HEAD',
          `cannot append to '${tape.name}': its head is now @${tape.head_seq}`,
          {
            data: { session: tape.name, head: tape.head_seq },
          },
        );
      return receipt(writeEncoded(this.#writer, tape, drafts, { epoch, repeated }));
    });
  }

  result(ref: Ref, value: Json, { lease, meta }: WriteOptions & { meta?: Meta } = {}): Appended {
    return this.db.write(() => {
      const tape = this.need(ref);
      const drafts: Draft[] = [{ kind: 'result', payload: { value }, ...(meta !== undefined && { meta }) }];
      return receipt(writeEntries(this.#writer, tape, drafts, this.#epoch(tape, lease)));
    });
  }

  fork(parent: Ref, request: ForkRequest = {}): Forked {
    const asked = withKeys(request);
    const forked = this.db.writeThrough(() => forkTape(this.#writer, this.need(parent), asked));
    return { ...forked, ...this.#drainOutbox() };
  }

  previewFork(parent: Ref, request: ForkRequest = {}): ForkPreview {
    const asked = withKeys(request);
    return this.db.read(() => previewFork(this.#writer, this.need(parent), asked));
  }

  previewMerge(child: Ref, request: MergeRequest = {}): MergePreview {
    return this.db.read(() => previewMerge(this.#writer, this.realm, { ...request, child }));
  }

  merge(child: Ref, request: MergeRequest = {}, o: WriteOptions = {}): Merged {
    const [merged] = this.mergeAll([{ ...request, child }], o);
    if (merged === undefined) throw new TypeError('a merge of one child has one receipt');
    return merged;
  }

  mergeAll(drafts: readonly MergeDraft[], { lease }: WriteOptions = {}): readonly Merged[] {
    for (;;) {
      const planned = drafts.map((draft) => ({ draft, plan: planMerge(this.db, this.realm, draft) }));
      const merged = this.db.writeThrough(() => mergeTapes(this.#writer, planned, lease));
      if (merged === undefined) continue; // A child changed after it was read.
      const lagging = this.#drainOutbox();
      return merged.map((receipt) => ({ ...receipt, ...lagging }));
    }
  }

  rewind(ref: Ref, to: Point, { lease, mode }: WriteOptions & { mode?: string } = {}): Rewound {
    return this.db.write(() => {
      const tape = this.need(ref);
      return rewindTape(this.#writer, tape, { to, epoch: this.#epoch(tape, lease), mode });
    });
  }

  unrewind(ref: Ref, { lease, rewind }: WriteOptions & { rewind?: Seq } = {}): Rewound {
    return this.db.write(() => {
      const tape = this.need(ref);
      return unrewindTape(this.#writer, tape, { epoch: this.#epoch(tape, lease), rewind });
    });
  }

  setLifecycle(ref: Ref, lifecycle: Lifecycle): SessionInfo {
    return this.#change(() => {
      const tape = this.need(ref);
      const epoch = lifecycle === 'archived' ? this.#epoch(tape, undefined) : tape.epoch;
      return setLifecycle(this.#writer, tape, { lifecycle, epoch });
    });
  }

  setTask(ref: Ref, task: Task, { lease }: WriteOptions = {}): SessionInfo {
    return this.#change(() => {
      const tape = this.need(ref);
      return setTask(this.#writer, tape, { task, epoch: this.#epoch(tape, lease) });
    });
  }

  alias(alias: string, ref: Ref, reason: string): SessionInfo {
    return this.#change(() => {
      const tape = this.need(ref);
      aliasTape(this.#writer, this.realm, { tape, alias, reason });
      return tape;
    });
  }

  acquire(ref: Ref, owner: Owner, { ttlMs }: { ttlMs?: number } = {}): Lease {
    return this.db.write(() => acquireLease(this.db, this.need(ref), { owner, now: this.#now(), ttlMs }));
  }

  extend(lease: Lease, { ttlMs }: { ttlMs?: number } = {}): Lease {
    return this.db.write(() => extendLease(this.db, this.need(lease.id), { lease, now: this.#now(), ttlMs }));
  }

  holds(lease: Lease): boolean {
    return this.need(lease.id).epoch === lease.epoch;
  }

  changes(): number {
    return this.db.dataVersion() + this.db.commits;
  }

  owners(): readonly SessionOwner[] {
    return liveOwners(this.db, this.#now());
  }

  release(lease: Lease, o: { readonly inputs?: boolean } = {}): boolean {
    return this.db.write(() => releaseLease(this.db, this.need(lease.id), lease, o));
  }

  post(ref: Ref, item: InboxDraft): Posted {
    // Checked and keyed now, so that draining cannot fail on it and a repeated append adds nothing.
    const body =
      item.body.type === 'append' || item.body.type === 'input'
        ? { ...item.body, drafts: keyed(item.body.drafts.flatMap(normalise), item.key) }
        : item.body;
    return this.db.write(() => {
      const tape = this.need(ref);
      const appended =
        body.type === 'append' || body.type === 'input'
          ? repeatedOnly(tape, repetitions(this.#writer, tape, body.drafts.map(encodeDraft)))
          : undefined;
      if (appended !== undefined) return { id: item.key ?? '', appended };
      const id = postItem(this.#writer, tape, { ...item, body });
      const held = liveLease(this.db, tape.id, this.#now());
      return { id, ...(held !== undefined && { owner: ownerOf(held) }) };
    });
  }

  drain(lease: Lease, handled: readonly HandledItem[] = [], { later }: DrainOptions = {}): number {
    const count = this.db.writeThrough(() => {
      const tape = this.need(lease.id);
      this.#epoch(tape, lease);
      const before = takeItems(this.#writer, tape.id, handled, lease);
      return (
        before + drainInbox(this.#writer, this.realm, { tapeId: tape.id, lease, ...(later && { later }) })
      );
    });
    if (count > 0) this.#drainOutbox();
    return count;
  }

  saveChunks(streams: readonly LiveStream[]): void {
    this.db.writeBehind(() => {
      for (const stream of streams) saveChunks(this.db, this.need(stream.session), stream);
    });
  }

  settle(run: string, batch: readonly Draft[], { lease }: { readonly lease: Lease }): Appended {
    return this.db.write(() => {
      const tape = this.need(lease.id);
      const appended =
        batch.length > 0 ? this.append(lease.id, batch, { lease }) : this.#nothingAppended(tape, lease);
      crashPoint('settle/appended');
      dropChunks(this.db, tape, run);
      return appended;
    });
  }

  #nothingAppended(tape: TapeRow, lease: Lease): Appended {
    this.#epoch(tape, lease);
    return receipt({ tape, seqs: [], added: 0 });
  }

  stage(name: string, init: StageInit = {}): SessionInfo {
    return infoOf(this.db.write(() => stageTape(this.#writer, this.realm, name, init)));
  }

  appendStaged(id: string, batch: readonly Draft[]): Appended {
    const drafts = keyed(batch.flatMap(normalise), undefined);
    return this.db.write(() => receipt(appendStaged(this.#writer, id, drafts)));
  }

  publish(ids: readonly string[]): readonly SessionInfo[] {
    const tapes = this.db.writeThrough(() => publishTapes(this.#writer, ids));
    this.#drainOutbox();
    return tapes.map(infoOf);
  }

  search(query: SearchQuery): readonly Hit[] {
    if (!this.#readonly) updateIndex(this.db);
    return this.db.read(() => searchEntries(this.db, this.realm, query));
  }

  /** Empties the search index; the next search rebuilds it. */
  dropSearchIndex(): void {
    this.db.write(() => dropIndex(this.db));
  }

  /**
   * Erases an entry's content and records a redaction with the reason; the hash chain still verifies. Writes
   * to the tape that owns the entry. Truncates the WAL, so that it keeps no copy; see `Redacted.logEmptied`.
   * @throws TAPE_BAD_ENTRY, TAPE_UNSETTLED, TAPE_BUSY, TAPE_FENCED, TAPE_NO_ANCHOR, TAPE_NO_SEQ
   */
  redact(ref: Ref, point: Point, reason: string, { lease }: WriteOptions = {}): Redacted {
    const done = this.db.writeAndWipe(() => {
      const tape = this.need(ref);
      const seq = resolvePoint(this.db, tape, point);
      const owner = ownerOfSeq(this.#writer, tape, seq);
      return redactEntry(this.#writer, owner, { seq, reason, epoch: this.#epoch(owner, lease) });
    });
    crashPoint('redact/before-checkpoint');
    return { ...done, logEmptied: emptyLog(this.db) };
  }

  /**
   * Copies the store to a new file while it is in use, and verifies the copy before it gets its name.
   * @throws TAPE_EXISTS, TAPE_CORRUPT, TAPE_CANNOT_OPEN
   */
  async backup(file: string): Promise<void> {
    await backupTo(this.db, file, function* (copy) {
      using store = openTapeStore(copy, { readonly: true });
      yield* store.verify();
    });
  }

  /** Finds what is left over or out of date, other than damage. Writes nothing. */
  *examine(): Iterable<Finding> {
    yield* examine(this.db, this.#writer.sources);
  }

  /** Repairs a fixable finding of `examine`. Never changes entries or lineage. */
  mend({ code, session, fixable }: Finding): void {
    if (!fixable) return;
    if (code === 'search-ahead') this.dropSearchIndex();
    if (session === null) return;
    if (code === 'open-calls-differ') this.db.write(() => rebuildBatches(this.db, this.need(session)));
    // Taking and releasing the lease drains the inbox and removes the stale lease.
    else if (code === 'stale-lease' || code === 'inbox-waiting') this.drainOwnerless(session);
  }

  /**
   * Writes the WAL back into the database file and truncates it; false when a reader or writer blocked it.
   */
  checkpoint(): boolean {
    return this.db.checkpoint();
  }

  /** Updates the graph file and drains inboxes without an owner, as every opening for writing does. */
  catchUp(): void {
    crashPoint('open/before-outbox');
    try {
      if (this.#journal !== undefined) drainOutbox(this.db, this.#journal);
    } catch (error) {
      // A graph file that cannot be written now only lags. One with other lines (GRAPH_DIVERGED) must not be
      // written.
      if ((error as { code?: unknown }).code !== 'GRAPH_IO') throw error;
    }
    crashPoint('open/before-inboxes');
    for (const id of tapesWithInbox(this.#writer)) this.drainOwnerless(tapeById(this.db, id).ulid);
    crashPoint('open/done');
  }

  /** Drains the inbox of a session without a live lease; returns false, and does nothing, if it has one. */
  drainOwnerless(ref: Ref): boolean {
    const done = this.db.writeThrough(() => drainInPlaceOfOwner(this.#writer, this.realm, this.need(ref)));
    if (done) this.#drainOutbox();
    return done;
  }

  #now(): number {
    return this.#writer.sources.now();
  }

  #epoch(tape: TapeRow, lease: Lease | undefined): number {
    return writeEpoch(this.db, tape, { lease, now: this.#now() });
  }

  #change(act: () => TapeRow): SessionInfo {
    const tape = this.db.writeThrough(act);
    this.#drainOutbox();
    return infoOf(tape);
  }

  /**
   * Appends missing lines to the graph file. The act is committed, so a failure only reports `graphLagging`;
   * the next open updates the file, or throws GRAPH_DIVERGED.
   */
  #drainOutbox(): { graphLagging?: true } {
    if (this.#journal === undefined) return {};
    try {
      drainOutbox(this.db, this.#journal);
      return {};
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (typeof code === 'string' && /^(?:TAPE|GRAPH)_/.test(code)) return { graphLagging: true };
      throw error;
    }
  }
}

/** Sets the keys of a batch. The prefix `u:` separates callers' keys from the store's own. */
function keyed(drafts: readonly Draft[], key: string | undefined): Draft[] {
  return drafts.map((draft, i) => {
    const own = draft.key ?? (key === undefined ? undefined : i === 0 ? key : `${key}#${i + 1}`);
    return own === undefined ? draft : { ...draft, key: `u:${own}` };
  });
}

/** Normalises the finished work of a request and sets its keys, like `append`. */
function withKeys(request: ForkRequest): ForkRequest {
  const { done } = request;
  if (done === undefined) return request;
  return { ...request, done: { ...done, drafts: keyed(done.drafts.flatMap(normalise), undefined) } };
}
