import type { Pool } from 'pg';
import type { Problem } from '../check/problem.ts';
import { type Sources, systemSources } from '../clock.ts';
import { parseBase } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { tapesWithInbox } from '../inbox/inbox.ts';
import type { ProgressOptions } from '../progress.ts';
import type { SearchQuery } from '../search/search.ts';
import { maskFor } from '../secrets/mask.ts';
import { type Redact, redactorFor } from '../secrets/redactor.ts';
import { type Secret, secretsIn } from '../secrets/secrets.ts';
import { Connection } from '../store/connection.ts';
import { entriesOn } from '../store/entries.ts';
import { historyOn } from '../store/history.ts';
import { identitiesOn } from '../store/identities.ts';
import { importsOn } from '../store/imports.ts';
import { inboxOn } from '../store/inbox.ts';
import { leasesOn } from '../store/leases.ts';
import { lineageOn } from '../store/lineage.ts';
import { liveOn } from '../store/live.ts';
import { maskedStore } from '../store/masked-store.ts';
import { sessionsOn } from '../store/sessions.ts';
import type { TapeStore } from '../store/store.ts';
import { viewsOn } from '../store/views.ts';
import type { Lease } from '../tape/lease.ts';
import { tapeById } from '../tape/tape.ts';
import { type Address, type AddressOptions, parseAddress } from './address.ts';
import { callOf, isOfOwner } from './calls.ts';
import { ServerClock } from './clock.ts';
import { poolOf } from './connect.ts';
import { PostgresDb } from './db.ts';
import { typed } from './errors.ts';
import { Listener } from './listener.ts';
import { HomeLocks } from './locks.ts';
import { migrate } from './migrate.ts';
import { Pages } from './pages.ts';
import { Runner } from './runner.ts';
import { verified } from './verified.ts';

/** How to open a store on a server. */
export interface PostgresOptions extends Partial<Sources>, AddressOptions {
  /** Prefix of tape names: `tape` gives `tape:main`. Default: the one that the home records, else `tape`. */
  readonly base?: string;
  /** The id that a new home gets. Default: a new ULID. */
  readonly homeId?: string;
  /** The most connections at once (default 5). */
  readonly connections?: number;
  /** See `StoreOptions.secrets`. */
  readonly secrets?: readonly Secret[];
  /** See `StoreOptions.redact`. */
  readonly redact?: Redact;
}

/**
 * How long a lease lives on a server without a heartbeat, in milliseconds: owners are on several machines, and others go on
 * with what one has left who died.
 */
export const serverLeaseMs = 10_000;

/** Opens the tapes of a schema on a server; makes the schema if it does not exist. */
export async function openPostgresStore(url: string, o: PostgresOptions = {}): Promise<TapeStore> {
  const address = parseAddress(url, o);
  const clock = new ServerClock();
  const pool = poolOf(address, { max: o.connections ?? 5, clock });
  const listener = new Listener(address, pool);
  const sources = systemSources({ now: clock.now, uptime: () => undefined, ...o });
  try {
    await migrate(pool, address, o.homeId ?? sources.newId);
  } catch (error) {
    await pool.end();
    throw typed(address.shown, error);
  }
  const db = new PostgresDb(address.shown);
  const locks = new HomeLocks(address.schema);
  const writer = { db, sources: db.sourcesOf(sources) };
  const runner = new Runner({ pool, db, locks, clock });
  const base = parseBase(o.base ?? (await runner.run(() => recordedBase(db))) ?? 'tape');
  const store = new PostgresTapeStore({
    pool,
    runner,
    locks,
    listener,
    address,
    at: new Connection(writer, { base, journal: undefined, readonly: false }),
  });
  for (const id of await runner.run(() => tapesWithInbox(writer)))
    await store.inbox.drain((await runner.run(() => tapeById(db, id))).ulid);
  return maskedStore(store, maskFor(o.secrets ?? secretsIn(process.env)), redactorFor(o.redact ?? true));
}

function recordedBase(db: PostgresDb): string | undefined {
  return db.get<{ value: string }>(`SELECT value FROM home WHERE key = 'base'`)?.value;
}

interface Parts {
  readonly address: Address;
  readonly pool: Pool;
  readonly runner: Runner;
  readonly locks: HomeLocks;
  readonly listener: Listener;
  readonly at: Connection;
}

/** The methods that can post to an inbox. */
const postsItems: ReadonlySet<string> = new Set(['inbox.post', 'lineage.merge']);

/** The session whose lease a call has taken or released. */
function leasedIn(method: string, first: unknown, done: unknown): string | undefined {
  const isTaken = method === 'leases.acquire';
  return isTaken || (method === 'leases.release' && done === true)
    ? ((isTaken ? done : first) as Lease).id
    : undefined;
}

/** Drains act by act, until one leaves nothing. */
function inParts(drain: TapeStore['inbox']['drain'], most = 1): TapeStore['inbox']['drain'] {
  return async (...args) => {
    for (let count = 0; ; ) {
      const now = await drain(...args);
      if (now === undefined) return count > 0 ? count : undefined;
      count += now;
      if (now < most) return count;
    }
  };
}

/** The tapes of a home on a server. */
class PostgresTapeStore implements TapeStore {
  readonly #parts: Parts;
  readonly sessions: TapeStore['sessions'];
  readonly entries: TapeStore['entries'];
  readonly views: TapeStore['views'];
  readonly history: TapeStore['history'];
  readonly lineage: TapeStore['lineage'];
  readonly leases: TapeStore['leases'];
  readonly inbox: TapeStore['inbox'];
  readonly live: TapeStore['live'];
  readonly imports: TapeStore['imports'];
  readonly identities: TapeStore['identities'];
  readonly leaseMs: number = serverLeaseMs;
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { at } = parts;
    const pages = new Pages(parts);
    this.sessions = this.#later('sessions', sessionsOn(at));
    this.entries = Object.assign(this.#later('entries', entriesOn(at)), {
      read: pages.entries.bind(pages),
      search: async (query: SearchQuery) => {
        this.#assertOpen();
        return await pages.search(query);
      },
    });
    this.views = Object.assign(this.#later('views', viewsOn(at)), { entries: pages.view.bind(pages) });
    this.history = this.#later('history', historyOn(at));
    this.lineage = Object.assign(this.#later('lineage', lineageOn(at)), { read: pages.lines.bind(pages) });
    this.leases = this.#later('leases', leasesOn(at));
    const inbox: TapeStore['inbox'] = this.#later('inbox', inboxOn(at));
    this.inbox = Object.assign(inbox, { drain: inParts(inbox.drain, at.db.itemsOfAct) });
    this.live = this.#later('live', liveOn(at));
    this.imports = this.#later('imports', importsOn(at));
    this.identities = this.#later('identities', identitiesOn(at));
  }

  get base(): string {
    return this.#parts.at.realm;
  }

  inRealm(base: string): TapeStore {
    return new PostgresTapeStore({ ...this.#parts, at: this.#parts.at.inRealm(base) });
  }

  async changes(session?: string): Promise<number> {
    return await this.#parts.listener.count(session);
  }

  verify(ref?: string, o: ProgressOptions = {}): AsyncIterable<Problem> {
    return verified(this.#parts, ref, o);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#parts.listener.close();
    await this.#parts.pool.end();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new TapeError('TAPE_CLOSED', 'cannot use the store: it is closed');
  }

  /** The methods of a group, each of which answers later. */
  #later<Group extends object>(path: string, group: Group): never {
    const { runner, locks, listener, at } = this.#parts;
    return Object.fromEntries(
      Object.entries(group).map(([name, act]: [string, (...args: readonly unknown[]) => unknown]) => [
        name,
        async (...args: readonly unknown[]) => {
          this.#assertOpen();
          const method = `${path}.${name}`;
          const { hearing } = listener;
          const done = await runner.run(() => act(...args), {
            ...callOf(method, args),
            locks: locks.of(at.realm, method, args[0]),
            isOwner: isOfOwner(method, args),
          });
          if (postsItems.has(method)) listener.posted();
          const leased = leasedIn(method, args[0], done);
          if (leased !== undefined) listener.leased(leased, hearing);
          return done;
        },
      ]),
    ) as never;
  }
}
