import { rebuildBatches } from '../check/calls.ts';
import { rebuildConversation } from '../check/conversation.ts';
import { examine, type Finding } from '../check/doctor.ts';
import { type LooseEnds, looseEnds, looseEndsIn } from '../check/loose-ends.ts';
import type { Problem } from '../check/problem.ts';
import { verifyReferences } from '../check/references.ts';
import { rebuildUsage } from '../check/usage.ts';
import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import type { Watching } from '../db/write-check.ts';
import { hex } from '../entry/hash.ts';
import { baseFault, parseBase, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { wipeFile } from '../history/wipe.ts';
import { tapesWithInbox } from '../inbox/inbox.ts';
import {
  countSessions,
  type FamilyLine,
  familyOf,
  type NewestQuery,
  newestFamilies,
  newestRoots,
  pagesOfLines,
  sharedNames,
  spokenTimes,
} from '../lineage/family.ts';
import { type Elsewhere, nothingElsewhere } from '../origin/elsewhere.ts';
import type { ProgressOptions } from '../progress.ts';
import { dropIndex, fillIndex, indexedTo, unindexed } from '../search/text-index.ts';
import { supersededImports } from '../session/discard.ts';
import { type TotalCalls, totalCalls } from '../tape/calls.ts';
import type { SessionInfo } from '../tape/info.ts';
import { countListed, type ReadQuery, readTapes, type SessionQuery } from '../tape/listing.ts';
import { isRunOpen, saveRun } from '../tape/open-run.ts';
import { realmsOf } from '../tape/realms.ts';
import { type RecordedCall, recordedCalls } from '../tape/recorded-calls.ts';
import { type Ref, selectTape, type TapeRow, tapeById } from '../tape/tape.ts';
import {
  type Changes,
  changesBehind,
  type ErasedEntry,
  erasedBetween,
  type HomeHead,
  homeHead,
  type Written,
  writtenBehind,
} from '../tape/written.ts';
import { type Bundles, bundlesOn } from './bundles.ts';
import type { Connection, GraphFileState } from './connection.ts';
import { type EntriesInProcess, entriesOn } from './entries.ts';
import { historyOn } from './history.ts';
import { identitiesOn } from './identities.ts';
import { importsOn } from './imports.ts';
import type { InProcess } from './in-process.ts';
import { inboxOn } from './inbox.ts';
import { leasesOn } from './leases.ts';
import { type LineageInProcess, lineageOn } from './lineage.ts';
import { liveOn } from './live.ts';
import { assertOptions, fieldsOf } from './options.ts';
import { sessionsOn } from './sessions.ts';
import type {
  History,
  Identities,
  Imports,
  Inbox,
  Leases,
  Live,
  Sessions,
  TapeStore,
  Views,
} from './store.ts';
import { countVerified, verifyAll, verifyEach, verifySession } from './verify.ts';
import { viewsOn } from './views.ts';

/**
 * The tapes of a home in a database whose answers are there at once: `SqliteTapeStore` is one in a file. A method returns
 * after its COMMIT.
 *
 * @example
 * ```ts
 * import { type HomeStore, openTapeStore } from '@tapedeck/tape';
 *
 * using store: HomeStore = openTapeStore('tapes/tape.db');
 * store.sessions.open('main');
 * console.log(store.count().sessions); // 1
 * ```
 */
export class HomeStore implements TapeStore {
  readonly sessions: InProcess<Sessions>;
  readonly entries: EntriesInProcess;
  readonly views: InProcess<Views>;
  readonly history: InProcess<History>;
  readonly lineage: LineageInProcess;
  readonly leases: InProcess<Leases>;
  readonly inbox: InProcess<Inbox>;
  readonly live: InProcess<Live>;
  readonly imports: InProcess<Imports>;
  readonly identities: InProcess<Identities>;
  readonly bundles: Bundles;
  readonly #at: Connection;

  /** @internal */
  constructor(connection: unknown) {
    const at = connection as Connection;
    this.#at = at;
    this.sessions = sessionsOn(at);
    this.entries = entriesOn(at);
    this.views = viewsOn(at);
    this.history = historyOn(at);
    this.lineage = lineageOn(at);
    this.leases = leasesOn(at);
    this.inbox = inboxOn(at);
    this.live = liveOn(at);
    this.imports = importsOn(at);
    this.identities = identitiesOn(at);
    this.bundles = bundlesOn(at);
  }

  /** What the home contained that does not count here: see `StoreOptions.trust`. */
  get elsewhere(): Elsewhere {
    return this.#at.db.elsewhere;
  }

  /** Whether it reads a private copy of its home, made when it was opened for reading. */
  get isCopy(): boolean {
    return false;
  }

  /** Whether a newer build has upgraded the home since it was opened: what this store reads of it may mean something else. */
  get isUpgraded(): boolean {
    return false;
  }

  /** What the home contains now, to record it for `StoreOptions.trust`. */
  newest(): Elsewhere {
    return newestIn(this.#at.db);
  }

  /** The id of the home, a ULID. A copy of the home has it too. */
  get homeId(): string {
    return homeValue(this.#at.db, 'id') ?? '';
  }

  get base(): string {
    return this.#at.realm;
  }

  inRealm(base: string): HomeStore {
    return new HomeStore(this.#at.inRealm(base));
  }

  /**
   * Records the base of the home: the realm that openings of it without a `base` use from then on. This store keeps its
   * own.
   * @throws TAPE_BAD_NAME
   */
  keepBase(base: string): void {
    const value = parseBase(base);
    this.#at.db.write(() =>
      this.#at.db.run(
        `INSERT INTO home (key, value) VALUES ('base', @value) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
        { value },
      ),
    );
  }

  /** Counts the sessions of the other realms of the home: those that are not of this store's, or not of `base`. */
  otherRealms(
    base: string = this.#at.realm,
  ): readonly { readonly realm: string; readonly sessions: number }[] {
    return realmsOf(this.#at.db)
      .filter((realm) => realm !== base)
      .map((realm) => ({
        realm,
        sessions:
          this.#at.db.get<{ n: number }>(
            `SELECT count(*) AS n FROM tape WHERE realm = @realm AND lifecycle NOT IN ('staging', 'purged')`,
            { realm },
          )?.n ?? 0,
      }))
      .filter(({ sessions }) => sessions > 0);
  }

  /**
   * Reads the lines of the lineage about the newest sessions of all realms that are not deleted, and about the ancestors of
   * each, up to a hundred.
   */
  newestFamilies(query: NewestQuery = {}): readonly FamilyLine[] {
    return newestFamilies(this.#at.db, query);
  }

  /** Reads the lines of the lineage about a session, its ancestors and its descendants. */
  familyOf(ref: Ref): readonly FamilyLine[] {
    return familyOf(this.#at.db, this.#at.need(ref));
  }

  /**
   * Reads the lines of the lineage about all sessions of all realms, page by page: those of each session together, in the
   * order in which the sessions were made.
   */
  linesBySession(): Generator<readonly FamilyLine[], void> {
    return pagesOfLines(this.#at.db);
  }

  /** The names that several sessions of the home have that are not deleted. */
  sharedNames(): ReadonlySet<string> {
    return sharedNames(this.#at.db);
  }

  /** The ULIDs of the sessions without a parent, in all realms. The tree in which something was said last comes first. */
  newestRoots(): readonly string[] {
    return newestRoots(this.#at.db);
  }

  /**
   * Returns when something was last said in each session, or in those of some ULIDs: the time of its last message at the
   * source, or that of its creation.
   */
  spokenTimes(ids?: readonly string[]): ReadonlyMap<string, number> {
    return spokenTimes(this.#at.db, ids);
  }

  /**
   * Counts the sessions of all realms, those of an unfinished import included, or the children of the session of a ULID;
   * with `deleted`, deleted ones, too.
   */
  countSessions(parent?: string, { deleted = false }: { readonly deleted?: boolean } = {}): number {
    return countSessions(this.#at.db, { parent, deleted });
  }

  /**
   * Reads the sessions that `sessions.list(query)` lists, also in another order, with little memory: first which they are,
   * then a few at a time. What it yields of a session is what that is when its turn comes.
   * @example
   * ```ts
   * import { openTapeStore } from '@tapedeck/tape';
   *
   * using store = openTapeStore('tapes/tape.db');
   * for (const { session, messageCount } of store.readSessions({ order: 'messages' }))
   *   console.log(session, messageCount);
   * ```
   */
  readSessions(query: ReadQuery = {}): Generator<SessionInfo, void> {
    assertOptions(query, fieldsOf.readSessions, 'read sessions');
    return readTapes(this.#at.db, this.#at.realm, query);
  }

  /** Counts the sessions that `sessions.list(query)` lists. */
  countListed(query: Pick<SessionQuery, 'all' | 'deleted' | 'kind' | 'roots'> = {}): number {
    assertOptions(query, fieldsOf.readSessions, 'count sessions');
    return countListed(this.#at.db, this.#at.realm, query);
  }

  /** Returns how far the home has come. Cheap, however much it has. */
  homeHead(): HomeHead {
    return homeHead(this.#at.db);
  }

  /**
   * Finds the sessions that were written to behind a place of the home, those of all realms. The cost grows with what was
   * written since; of very much it says only that it is more.
   */
  writtenBehind(after: HomeHead): Written {
    return writtenBehind(this.#at.db, after);
  }

  /** Runs `act`, whose reads all see the home as it is at one moment, whatever other processes write. It must not wait. */
  atOnce<T>(act: () => T): T {
    return this.#at.db.read(act);
  }

  /** Reads the model calls that the own entries of a session record behind a position, in order, without their texts. */
  recordedCalls(ref: Ref, after = 0): Generator<RecordedCall, void> {
    return recordedCalls(this.#at.db, this.#at.need(ref), after);
  }

  /** See `TapeStore.leaseMs`. */
  leaseMs?: number;

  /** See `StoreOptions.lockWaitMs`. It can change at any time. */
  get lockWaitMs(): number {
    return this.#at.db.lockWaitMs;
  }

  set lockWaitMs(ms: number) {
    this.#at.db.lockWaitMs = ms;
  }

  changes(): number {
    return this.#at.db.dataVersion() + this.#at.db.commits;
  }

  /**
   * @internal Runs `act`, which must not wait, and calls `watching` for each of its transactions that write. One for which `before`
   * throws `ToDoFirst` begins anew.
   */
  watched<T>(watching: Watching, act: () => T): T {
    return this.#at.db.watched(watching, act);
  }

  /** @internal Finds what was written and erased behind a place of the home, and whether an event with a name was. */
  changesBehind(after: HomeHead, event: string): Changes {
    return changesBehind(this.#at.db, { after, event });
  }

  /** @internal The title that a session was created with, unless that was erased: others are on its entries. */
  createdTitle(id: string): string | undefined {
    const row = this.#at.db.get<{ title: string | null }>('SELECT title FROM tape WHERE ulid = @id', { id });
    return row?.title ?? undefined;
  }

  /** @internal Finds the entries whose content was erased behind an entry of the home; undefined where they are too many. */
  erasedBetween(after: number, to: number): readonly ErasedEntry[] | undefined {
    return erasedBetween(this.#at.db, { after, to });
  }

  *verify(ref?: Ref, o: ProgressOptions = {}): Iterable<Problem> {
    assertOptions(o, fieldsOf.progress, 'verify', this.#at.named(ref ?? 'the store'));
    if (ref === undefined) yield* verifyAll(this.#at.db, o.onProgress);
    else yield* verifySession(this.#at.db, this.#at.need(ref), o.onProgress);
  }

  /** Yields the problems of some sessions, of each its own entries alone. */
  *verifyEach(ids: readonly string[], o: ProgressOptions = {}): Iterable<Problem> {
    yield* verifyEach(this.#at.db, this.#tapesOf(ids), o.onProgress);
  }

  /** Yields what the checks of the database itself report; of one on a server, rows that refer to missing ones. */
  *verifyDatabase(): Iterable<Problem> {
    yield* verifyReferences(this.#at.db);
  }

  /** Counts the sessions and entries of the store, or those that a session reads. */
  count(ref?: Ref): { readonly sessions: number; readonly entries: number } {
    return countVerified(this.#at.db, ref === undefined ? undefined : this.#at.need(ref));
  }

  /** Counts the entries of all sessions whose content is not here, since the bundles that brought them did not have it. */
  countAbsent(): number {
    return this.#at.db.get<{ n: number }>('SELECT count(*) AS n FROM absent')?.n ?? 0;
  }

  /** Adds up the recorded usage of the model calls of all sessions of the realm. */
  totalCalls(): TotalCalls {
    return totalCalls(this.#at.db, this.#at.realm);
  }

  /**
   * Finds, among all sessions, those with a sign of unfinished work, or of a fork or merge that is recorded on one side
   * only. `audit` examines these alone.
   */
  looseEnds(o: ProgressOptions = {}): LooseEnds {
    assertOptions(o, fieldsOf.progress, 'look for loose ends', 'the store');
    return looseEnds(this.#at.db, o.onProgress);
  }

  /** The same among some sessions. */
  looseEndsIn(ids: readonly string[]): LooseEnds {
    return looseEndsIn(this.#at.db, this.#tapesOf(ids));
  }

  /** The numbers of the tapes of sessions that are there. */
  #tapesOf(ids: readonly string[]): readonly number[] {
    return this.#at.db
      .all<{ id: number }>('SELECT id FROM tape WHERE ulid IN (SELECT value FROM json_each(@ids))', {
        ids: JSON.stringify(ids),
      })
      .map(({ id }) => id);
  }

  /**
   * Returns number and hash (hex) of a lineage line, by default the newest, to compare with the graph file.
   */
  lineageHash(g?: number): { readonly g: number; readonly hash: string } | undefined {
    const row = this.#at.db.get<{ g: number; hash: Uint8Array }>(
      'SELECT g, hash FROM lineage WHERE g = coalesce(@g, (SELECT max(g) FROM lineage))',
      { g: g ?? null },
    );
    return row === undefined ? undefined : { g: row.g, hash: hex(row.hash) };
  }

  /** What this store has found and done to the graph file since it was opened. */
  get graphFile(): GraphFileState {
    return this.#at.graphFile;
  }

  /** The ids of the acknowledged findings. */
  acknowledged(): ReadonlySet<string> {
    const prefix = 'acknowledged:';
    const rows = this.#at.db.all<{ key: string }>(
      `SELECT key FROM home WHERE key >= 'acknowledged:' AND key < 'acknowledged;'`,
    );
    return new Set(rows.map(({ key }) => key.slice(prefix.length)));
  }

  /** Records that a finding is acknowledged. Again, it does nothing. */
  acknowledge(finding: string): void {
    const value = new Date(this.#at.now()).toISOString();
    this.#at.db.write(() =>
      this.#at.db.run('INSERT INTO home (key, value) VALUES (@key, @value) ON CONFLICT DO NOTHING', {
        key: `acknowledged:${finding}`,
        value,
      }),
    );
  }

  /** Empties the search index; the next searches, or `fillSearchIndex`, fill it. */
  dropSearchIndex(): void {
    this.#at.db.write(() => dropIndex(this.#at.db));
  }

  /** The state of the search index: how many entries it covers, and how many wait for it. */
  searchIndex(): { readonly indexed: number; readonly unindexed: number } {
    return { indexed: indexedTo(this.#at.db), unindexed: unindexed(this.#at.db) };
  }

  /**
   * Indexes for `search` everything that is not indexed yet, in chunks between which others can write.
   * @returns how many entries it indexed
   */
  fillSearchIndex(o: ProgressOptions = {}): number {
    assertOptions(o, fieldsOf.progress, 'fill', 'the search index');
    return fillIndex(this.#at.db, o.onProgress);
  }

  /** Finds what is left over or out of date, other than damage. Writes nothing. */
  *examine(): Iterable<Finding> {
    yield* examine(this.#at.db, this.#at.realm, this.#at.writer.sources);
  }

  /**
   * Repairs a fixable finding of `examine`, or a problem of what follows from the entries: open calls and runs, usage,
   * the search index. Never changes entries or lineage.
   * @returns whether it was repaired
   */
  mend(found: Finding | Problem): boolean {
    if ('fixable' in found) return this.#clear(found);
    const { code, session } = found;
    const { db } = this.#at;
    const rebuild = rebuilds[code];
    if (rebuild === undefined || session === null) return false;
    // A problem has the name of its session, which each realm may have.
    const named = db.all<TapeRow>(`${selectTape} WHERE t.name = @session`, { session });
    db.write(() => {
      for (const tape of named) rebuild(db, tape);
    });
    return true;
  }

  #clear({ code, session, fixable }: Finding): boolean {
    if (!fixable) return false;
    if (code === 'content-left') return wipeFile(this.#at.db);
    if (code === 'search-ahead') this.dropSearchIndex();
    else if (code === 'staging-left' && session !== null)
      this.imports.discard(supersededImports(this.#at.writer, this.#at.realm, session));
    // Taking and releasing the lease drains the inbox and removes the stale lease.
    else if (session !== null) this.inbox.drain(session);
    return true;
  }

  /** Updates the graph file and drains inboxes without an owner, as every opening for writing does. */
  catchUp({ keepInboxes = false }: { readonly keepInboxes?: boolean | undefined } = {}): void {
    const { db, writer } = this.#at;
    crashPoint('open/before-outbox');
    this.#at.updateGraph();
    crashPoint('open/before-inboxes');
    if (!keepInboxes)
      for (const id of tapesWithInbox(writer)) this.#drainUnlessDamaged(tapeById(db, id).ulid);
    crashPoint('open/done');
  }

  /** Drains an inbox. A damaged one stays as it is: its session reports it, and the others can be used. */
  #drainUnlessDamaged(session: string): void {
    try {
      this.inbox.drain(session);
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    }
  }

  /** Closes the database. */
  close(): void {
    this.#at.db.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

/** What writes again the rows that follow from the entries of a tape. */
const rebuilds: Readonly<Partial<Record<string, (db: Db, tape: TapeRow) => void>>> = {
  'open-calls-differ': rebuildBatches,
  'open-run-differs': (db, { id }) => saveRun(db, id, isRunOpen(db, id)),
  'usage-differs': rebuildUsage,
  'messages-differ': rebuildConversation,
};

/**
 * The base that a home records.
 * @throws TAPE_CORRUPT when another program recorded what is no base
 */
export function recordedBase(db: Db): string | undefined {
  const value = homeValue(db, 'base');
  const fault = value === undefined ? undefined : baseFault(value);
  if (fault === undefined) return value;
  throw new TapeError(
    'TAPE_CORRUPT',
    `cannot use the base ${quote(value ?? '')} that '${db.file}' records: ${fault}`,
    { data: { file: db.file, base: value } },
  );
}

/** A value of the table `home`. */
function homeValue(db: Db, key: 'id' | 'base'): string | undefined {
  return db.get<{ value: string }>('SELECT value FROM home WHERE key = @key', { key })?.value;
}

/**
 * What a home contains now. Reads every row: in a forged table, the last row need not have the greatest id. A file with
 * sessions alone is not one that began here.
 */
export function newestIn(db: Db): Elsewhere {
  const newest = db.get<{ entries: number; inbox: number }>(
    `SELECT coalesce((SELECT max(+id) FROM entry NOT INDEXED), 
         CASE WHEN EXISTS (SELECT 1 FROM tape) THEN 1 ELSE 0 END) AS entries,
       coalesce((SELECT max(+id) FROM inbox NOT INDEXED), 0) AS inbox`,
  );
  return newest ?? nothingElsewhere;
}
