import { verifyFile } from '../check/database.ts';
import type { Finding } from '../check/doctor.ts';
import type { Problem } from '../check/problem.ts';
import { assertOwnSchema, isSchemaCode, mendSchema } from '../check/schema.ts';
import { type Sources, systemSources } from '../clock.ts';
import type { Db } from '../db/db.ts';
import type { Fields } from '../entry/fields.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { Journal } from '../lineage/line.ts';
import { assertNoRecords } from '../lineage/outbox.ts';
import { type Elsewhere, getElsewhere } from '../origin/elsewhere.ts';
import type { OnProgress } from '../progress.ts';
import { maskFor } from '../secrets/mask.ts';
import { type Redact, type Redactor, redactFault, redactorFor } from '../secrets/redactor.ts';
import { type Secret, secretsIn } from '../secrets/secrets.ts';
import { schemaVersion } from '../sqlite/schema.ts';
import type { SqliteDb } from '../sqlite/sqlite.ts';
import { type BackupOptions, type BackupProgress, backupTo } from './backup.ts';
import { Connection } from './connection.ts';
import { HomeStore, newestIn, recordedBase } from './home.ts';
import { maskedStore } from './masked-store.ts';
import { type OpenOptions, openDatabase } from './open.ts';
import { assertOptions } from './options.ts';

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
export class SqliteTapeStore extends HomeStore {
  readonly #at: Connection;
  /** The connection, with what SQLite alone can do. */
  readonly #file: SqliteDb;

  /** @internal Use `openTapeStore`. */
  constructor(
    db: unknown,
    { base, journal, readonly = false, ...sources }: StoreOptions,
    connection?: unknown,
  ) {
    const at =
      (connection as Connection | undefined) ??
      new Connection(
        { db: db as Db, sources: systemSources(sources) },
        { base: base ?? recordedBase(db as Db) ?? 'tape', journal, readonly },
      );
    super(at);
    this.#at = at;
    this.#file = db as SqliteDb;
  }

  /**
   * Whether the store reads a private copy of its file, made when it was opened for reading: the directory cannot be
   * written, or the file is of another user.
   */
  override get isCopy(): boolean {
    return this.#file.isCopy;
  }

  /** Whether a newer build has upgraded the file since it was opened: what this store reads of it may mean something else. */
  override get isUpgraded(): boolean {
    return this.#file.pragma('user_version') !== schemaVersion;
  }

  /**
   * What the file contains now, to record it for `StoreOptions.trust`.
   * @throws TAPE_CORRUPT for a file with tables, triggers or views that do not belong in a tape home: they would write
   *   rows after it
   */
  override newest(): Elsewhere {
    assertOwnSchema(this.#at.db);
    return super.newest();
  }

  override inRealm(base: string): SqliteTapeStore {
    return new SqliteTapeStore(this.#file, {}, this.#at.inRealm(base));
  }

  /**
   * Yields what SQLite's own checks report of pages, indexes, references and schema. Reads the whole file.
   */
  override *verifyDatabase(): Iterable<Problem> {
    yield* verifyFile(this.#at.db);
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
      this.#file,
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

  /** Repairs what `HomeStore.mend` does, and triggers and indexes of the file. */
  override mend(found: Finding | Problem): boolean {
    if (!('fixable' in found) && isSchemaCode(found.code)) return mendSchema(this.#at.db, found.code);
    return super.mend(found);
  }

  /**
   * Writes the WAL back into the database file and truncates it; false when a reader or writer blocked it.
   */
  checkpoint(): boolean {
    return this.#at.db.checkpoint();
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
