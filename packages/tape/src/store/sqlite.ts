import { rebuildBatches } from '../check/calls.ts';
import { rebuildConversation } from '../check/conversation.ts';
import { verifyFile } from '../check/database.ts';
import { examine, type Finding } from '../check/doctor.ts';
import { type LooseEnds, looseEnds } from '../check/loose-ends.ts';
import type { Problem } from '../check/problem.ts';
import { assertOwnSchema, isSchemaCode, mendSchema } from '../check/schema.ts';
import { rebuildUsage } from '../check/usage.ts';
import { type Sources, systemSources } from '../clock.ts';
import { crashPoint } from '../crash-point.ts';
import type { Fields } from '../entry/fields.ts';
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
import type { Journal } from '../lineage/line.ts';
import { assertNoRecords } from '../lineage/outbox.ts';
import { type Elsewhere, getElsewhere, nothingElsewhere } from '../origin/elsewhere.ts';
import type { OnProgress, ProgressOptions } from '../progress.ts';
import { dropIndex, fillIndex, indexedTo, unindexed } from '../search/text-index.ts';
import { maskFor } from '../secrets/mask.ts';
import { type Redact, type Redactor, redactFault, redactorFor } from '../secrets/redactor.ts';
import { type Secret, secretsIn } from '../secrets/secrets.ts';
import { schemaVersion } from '../sqlite/schema.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { type TotalCalls, totalCalls } from '../tape/calls.ts';
import type { SessionInfo } from '../tape/info.ts';
import { countListed, type ReadQuery, readTapes, type SessionQuery } from '../tape/listing.ts';
import { isRunOpen, saveRun } from '../tape/open-run.ts';
import { realmsOf } from '../tape/realms.ts';
import { type RecordedCall, recordedCalls } from '../tape/recorded-calls.ts';
import { type Ref, selectTape, type TapeRow, tapeById } from '../tape/tape.ts';
import { type HomeHead, homeHead, type Written, writtenBehind } from '../tape/written.ts';
import { type BackupOptions, type BackupProgress, backupTo } from './backup.ts';
import { type Bundles, bundlesOn } from './bundles.ts';
import { Connection, type GraphFileState } from './connection.ts';
import { type EntriesInProcess, entriesOn } from './entries.ts';
import { historyOn } from './history.ts';
import { identitiesOn } from './identities.ts';
import { importsOn } from './imports.ts';
import type { InProcess } from './in-process.ts';
import { inboxOn } from './inbox.ts';
import { leasesOn } from './leases.ts';
import { type LineageInProcess, lineageOn } from './lineage.ts';
import { liveOn } from './live.ts';
import { maskedStore } from './masked-store.ts';
import { type OpenOptions, openDatabase } from './open.ts';
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
import { countVerified, verifyAll, verifySession } from './verify.ts';
import { viewsOn } from './views.ts';

/** How to open a store. */
export interface StoreOptions extends OpenOptions, Partial<Sources> {
  /** Prefix of tape names: `tape` gives `tape:main`. Default: the one that the home records, else `tape`. */
  readonly base?: string;
  /** The journal of `session_graph.jsonl`. Without one, the lineage stays in the database. */
  readonly journal?: Journal;
  /**
   * How long an act blocks the thread to wait for the write lock of another process, in milliseconds (default
   * 15,000). With 0 it gives up after 20 ms, for callers that retry on a timer. Opening itself always waits
   * for the default time.
   */
  readonly lockWaitMs?: number;
  /**
   * True: opening leaves inboxes without an owner as they are, for a caller that reports on them; `catchUp` drains
   * them.
   */
  readonly keepInboxes?: boolean;
  /**
   * Whether facts that can make something run count: models of kind `script:`, approvals, repeats of calls and
   * worktrees. True (default): those of the whole file; false: those recorded from now on; else those recorded since the
   * file contained what it names. The others can be read, and their entries have `elsewhere`.
   */
  readonly trust?: boolean | Elsewhere;
  /**
   * Texts that the store does not write: each method replaces them by `[secret NAME]` in what it is given. Default:
   * the values of environment variables whose names end with KEY, TOKEN, SECRET, PASSWORD or CREDENTIALS, and the
   * passwords of addresses in the environment.
   */
  readonly secrets?: readonly Secret[];
  /**
   * Where the store also replaces what has the form of a secret, such as `ghp_…`, by its kind: `[secret github]`. `true`
   * (default): in outputs of tools and in errors. `'all'`: in all that it is given. `false`: nowhere. An entry counts
   * them in `meta.redacted`.
   */
  readonly redact?: Redact;
}

/** Findings that keep no copy from being made: a view that contradicts its entries, and what a bundle did not bring. */
const isHarmless: ReadonlySet<Problem['code']> = new Set(['view-contradicted', 'not-here']);

const storeFields: Fields<StoreOptions> = {
  durability: ['full', 'fast'],
  readonly: true,
  inPlace: true,
  allowUnsafePlace: true,
  homeId: true,
  onWarning: true,
  onUpgrade: true,
  probe: true,
  base: true,
  journal: true,
  lockWaitMs: true,
  keepInboxes: true,
  trust: true,
  now: true,
  uptime: true,
  newId: true,
  salt: true,
  secrets: true,
  redact: true,
};

/**
 * Opens the tapes of one SQLite file; creates the file if it does not exist. `:memory:` is the same engine
 * without a file. Opening for writing first updates the graph file and drains inboxes without an owner.
 * @throws TAPE_CANNOT_OPEN, TAPE_UNSAFE_PLACE, TAPE_SCHEMA_NEWER, TAPE_NOT_A_TAPE, TAPE_CORRUPT,
 * GRAPH_DIVERGED; TAPE_SCHEMA_OLDER when opened for reading only; TAPE_BAD_OPTION for an option that does not exist,
 * before anything is opened
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore('tapes/tape.db');
 * store.sessions.open('main');
 * const { from, to } = store.entries.append('main', [user('Plan the release.')]);
 * console.log(from, to); // 2 2
 * ```
 */
export function openTapeStore(path: string, o: StoreOptions = {}): SqliteTapeStore {
  assertOptions(o, storeFields, 'open', path);
  const redactor = o.readonly === true ? undefined : redactorOf(path, o.redact);
  const { journal } = o;
  const db = openDatabase(path, o, journal === undefined ? undefined : () => assertNoRecords(journal));
  db.file = path;
  try {
    // What others added to the schema would run with the writes of this process.
    if (o.trust === false && o.readonly !== true) assertOwnSchema(db);
    if (o.trust !== undefined && o.trust !== true)
      db.elsewhere = o.trust === false ? allOf(db, o) : getElsewhere(o.trust);
    const store = new SqliteTapeStore(db, o);
    if (o.readonly !== true) store.catchUp(o);
    if (o.lockWaitMs !== undefined) store.lockWaitMs = o.lockWaitMs;
    return maskedStore(store, maskFor(o.secrets ?? secretsIn(process.env)), redactor);
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * The tapes of one SQLite file. Synchronous: a method returns after its COMMIT.
 *
 * @example
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore('tapes/tape.db');
 * store.sessions.open('main');
 * await store.backup('copy.db');
 * using copy = openTapeStore('copy.db', { readonly: true });
 * console.log(copy.count().sessions, [...copy.verify()].length); // 1 0
 * ```
 */
export class SqliteTapeStore implements TapeStore {
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

  /** @internal Use `openTapeStore`. */
  constructor(
    db: unknown,
    { base, journal, readonly = false, ...sources }: StoreOptions,
    connection?: unknown,
  ) {
    const realm = base ?? recordedBase(db as Db) ?? 'tape';
    const at =
      (connection as Connection | undefined) ??
      new Connection({ db: db as Db, sources: systemSources(sources) }, { base: realm, journal, readonly });
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

  /**
   * Whether the store reads a private copy of its file, made when it was opened for reading: the directory cannot be
   * written, or the file is of another user.
   */
  get isCopy(): boolean {
    return this.#at.db.isCopy;
  }

  /** Whether a newer build has upgraded the file since it was opened: what this store reads of it may mean something else. */
  get isUpgraded(): boolean {
    return this.#at.db.pragma('user_version') !== schemaVersion;
  }

  /** What the file contained that does not count here: see `StoreOptions.trust`. */
  get elsewhere(): Elsewhere {
    return this.#at.db.elsewhere;
  }

  /**
   * What the file contains now, to record it for `StoreOptions.trust`.
   * @throws TAPE_CORRUPT for a file with tables, triggers or views that do not belong in a tape home: they would write
   *   rows after it
   */
  newest(): Elsewhere {
    assertOwnSchema(this.#at.db);
    return newestIn(this.#at.db);
  }

  /** The id of the home, a ULID. A copy of the home has it too. */
  get homeId(): string {
    return homeValue(this.#at.db, 'id') ?? '';
  }

  get base(): string {
    return this.#at.realm;
  }

  inRealm(base: string): SqliteTapeStore {
    return new SqliteTapeStore(this.#at.db, {}, this.#at.inRealm(base));
  }

  /**
   * Records the base of the home: the realm that openings of it without a `base` use from then on. This store keeps its
   * own.
   * @throws TAPE_BAD_NAME
   */
  keepBase(base: string): void {
    const value = parseBase(base);
    this.#at.db.write(() =>
      this.#at.db.run(`INSERT OR REPLACE INTO home (key, value) VALUES ('base', @value)`, { value }),
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

  *verify(ref?: Ref, o: ProgressOptions = {}): Iterable<Problem> {
    assertOptions(o, fieldsOf.progress, 'verify', this.#at.named(ref ?? 'the store'));
    if (ref === undefined) yield* verifyAll(this.#at.db, o.onProgress);
    else yield* verifySession(this.#at.db, this.#at.need(ref), o.onProgress);
  }

  /**
   * Yields what SQLite's own checks report of pages, indexes, references and schema. Reads the whole file.
   */
  *verifyDatabase(): Iterable<Problem> {
    yield* verifyFile(this.#at.db);
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

  /**
   * Copies the store to a new file while it is in use, and verifies the copy before it gets its name.
   * @throws TAPE_EXISTS, TAPE_CORRUPT, TAPE_CANNOT_OPEN
   */
  async backup(file: string, o: BackupOptions = {}): Promise<void> {
    assertOptions(o, { onProgress: true }, 'back up to', file);
    const report =
      (of: BackupProgress['of']): OnProgress =>
      (now) =>
        o.onProgress?.({ ...now, of });
    await backupTo(
      this.#at.db,
      file,
      function* (copy) {
        using store = openTapeStore(copy, { readonly: true });
        // A recorded view that was copied from another session is no fault of the copy, and must not prevent it.
        for (const problem of store.verify(undefined, { onProgress: report('entries') }))
          if (!isHarmless.has(problem.code)) yield problem;
      },
      report('pages'),
    );
  }

  /** Finds what is left over or out of date, other than damage. Writes nothing. */
  *examine(): Iterable<Finding> {
    yield* examine(this.#at.db, this.#at.realm, this.#at.writer.sources);
  }

  /**
   * Repairs a fixable finding of `examine`, or a problem of what follows from the entries or from the format: open
   * calls and runs, usage, triggers, indexes, the search index. Never changes entries or lineage.
   * @returns whether it was repaired
   */
  mend(found: Finding | Problem): boolean {
    if ('fixable' in found) return this.#clear(found);
    const { code, session } = found;
    const { db } = this.#at;
    if (isSchemaCode(code)) return mendSchema(db, code);
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
    // Taking and releasing the lease drains the inbox and removes the stale lease.
    else if (session !== null) this.inbox.drain(session);
    return true;
  }

  /**
   * Writes the WAL back into the database file and truncates it; false when a reader or writer blocked it.
   */
  checkpoint(): boolean {
    return this.#at.db.checkpoint();
  }

  /** Updates the graph file and drains inboxes without an owner, as every opening for writing does. */
  catchUp({ keepInboxes = false }: Pick<StoreOptions, 'keepInboxes'> = {}): void {
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

/** @throws TAPE_BAD_OPTION */
function redactorOf(path: string, redact: Redact = true): Redactor | undefined {
  const fault = redactFault(redact);
  if (fault === undefined) return redactorFor(redact);
  const field = ['redact', ...fault.path].join('.');
  throw new TapeError('TAPE_BAD_OPTION', `cannot open ${quote(path)}: ${field} ${fault.why}`, {
    data: { field, near: [] },
  });
}

/** What a file contains that is opened without trust. Of one that cannot be read whole, everything. */
function allOf(db: Db, { readonly }: OpenOptions): Elsewhere {
  try {
    return newestIn(db);
  } catch (error) {
    if (readonly !== true || !(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    return { entries: Number.MAX_SAFE_INTEGER, inbox: Number.MAX_SAFE_INTEGER };
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
 * What a file contains now. Reads every row: in a forged table, the last row need not have the greatest id. A file with
 * sessions alone is not one that began here.
 */
function newestIn(db: Db): Elsewhere {
  const newest = db.get<{ entries: number; inbox: number }>(
    `SELECT coalesce((SELECT max(+id) FROM entry NOT INDEXED), EXISTS (SELECT 1 FROM tape)) AS entries,
       coalesce((SELECT max(+id) FROM inbox NOT INDEXED), 0) AS inbox`,
  );
  return newest ?? nothingElsewhere;
}

/**
 * The base that a home records.
 * @throws TAPE_CORRUPT when another program recorded what is no base
 */
function recordedBase(db: Db): string | undefined {
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
