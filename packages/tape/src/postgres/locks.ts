import { createHash } from 'node:crypto';
import { toStatement } from './dialect.ts';
import type { Statement } from './pipeline.ts';

/** What an act locks until its transaction ends. Without a session it is alone in the home. */
export interface Locks {
  readonly statements: readonly Statement[];
}

/**
 * The methods whose acts write one session and nothing beside it. Those of different sessions run at the same time; all
 * others, which read or write several sessions, names or the lineage, run alone, as under the write lock of a file.
 */
const ofOneSession: ReadonlySet<string> = new Set([
  'entries.append',
  'history.rewind',
  'history.unrewind',
  'inbox.post',
  'leases.acquire',
  'leases.extend',
  'leases.release',
]);

/** The code of the error of a session that its lock does not find: it has another name than the one that it was called by. */
export const notFound = 'TD004';

/** Makes the locks of the acts of a home. */
export class HomeLocks {
  readonly #home: string;
  /** Locks the home alone. */
  readonly alone: Locks;
  readonly #together: Statement;

  constructor(schema: string) {
    this.#home = String(keyOf(schema));
    const params = { home: this.#home };
    this.alone = {
      statements: [toStatement('SELECT pg_advisory_xact_lock(CAST(@home AS BIGINT))', params)],
    };
    this.#together = toStatement('SELECT pg_advisory_xact_lock_shared(CAST(@home AS BIGINT))', params);
  }

  /** The locks of a call of a method, whose first argument says which session it is about. */
  of(realm: string, method: string, first: unknown): Locks {
    if (method === 'live.save' && Array.isArray(first)) return this.#ofStreams(first);
    const ref = typeof first === 'string' ? first : (first as { id?: unknown } | undefined)?.id;
    if (!ofOneSession.has(method) || typeof ref !== 'string') return this.alone;
    // Names change under the lock of the home alone: what a name means is fixed once the first statement is done.
    const session = toStatement(
      `SELECT must_lock(count(*)) FROM (
         SELECT pg_advisory_xact_lock(hashtextextended(ulid, CAST(@home AS BIGINT))) AS held FROM (
           SELECT ulid FROM tape WHERE ulid = @ref
           UNION ALL SELECT ulid FROM (SELECT ulid FROM tape WHERE realm = @realm AND name = @ref
             AND lifecycle NOT IN ('destroyed','purged') ORDER BY incarnation DESC LIMIT 1) named LIMIT 1) named) locked`,
      { home: this.#home, ref, realm },
    );
    return { statements: [this.#together, session] };
  }

  /** The locks of saves of live answers: those of their sessions, in one order, as two of them can be of the same ones. */
  #ofStreams(streams: readonly { readonly session: string }[]): Locks {
    const refs = [...new Set(streams.map(({ session }) => session))];
    const sessions = toStatement(
      `SELECT must_lock(CAST(count(*) = CAST(@count AS BIGINT) AS INTEGER)) FROM (
         SELECT pg_advisory_xact_lock(hashtextextended(ulid, CAST(@home AS BIGINT))) AS held FROM (
           SELECT ulid FROM tape WHERE ulid IN (SELECT value FROM json_each(@refs)) ORDER BY ulid) named) locked`,
      { home: this.#home, refs: JSON.stringify(refs), count: refs.length },
    );
    return { statements: [this.#together, sessions] };
  }
}

function keyOf(schema: string): bigint {
  return createHash('sha256').update(`tapedeck ${schema}`).digest().readBigInt64BE();
}
