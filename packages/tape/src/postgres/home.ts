import { systemSources } from '../clock.ts';
import { maskFor } from '../secrets/mask.ts';
import { redactorFor } from '../secrets/redactor.ts';
import { secretsIn } from '../secrets/secrets.ts';
import { Connection } from '../store/connection.ts';
import { type HomeStore, recordedBase } from '../store/home.ts';
import { maskedStore } from '../store/masked-store.ts';
import { parseAddress } from './address.ts';
import { ServerClock } from './clock.ts';
import { poolOf } from './connect.ts';
import { PostgresDb } from './db.ts';
import { typed } from './errors.ts';
import { openLink } from './link.ts';
import { HomeLocks } from './locks.ts';
import { assertMade, migrate } from './migrate.ts';
import { ServerHome } from './server-home.ts';
import { type PostgresOptions, serverLeaseMs } from './store.ts';

/** How to open a home on a server for a program that waits for each answer. */
export interface PostgresHomeOptions extends Omit<PostgresOptions, 'connections'> {
  /**
   * `create` (default) makes the schema if it does not exist; `write` opens one that exists, and brings it up to date; `read`
   * writes nothing.
   */
  readonly access?: 'create' | 'write' | 'read';
  /** Inboxes without an owner stay as they are. */
  readonly keepInboxes?: boolean;
  /**
   * Called each 200 milliseconds in which the server has not answered a statement, with how many there were so far, and with 0
   * when it has. The thread stands still meanwhile: no timer and no listener of a signal is called.
   */
  readonly onBlocked?: (ms: number) => void;
}

/**
 * Opens the tapes of a schema on a server, for a program that may wait for each answer: all methods are synchronous, as
 * those of a file are.
 * @throws TAPE_CANNOT_OPEN; TAPE_NOT_A_TAPE for a schema that does not exist, where it is not made; TAPE_SCHEMA_NEWER;
 *   TAPE_SCHEMA_OLDER when it is opened for reading
 */
export async function openPostgresHome(url: string, o: PostgresHomeOptions = {}): Promise<HomeStore> {
  const { access = 'create' } = o;
  const isReading = access === 'read';
  const address = parseAddress(url, o);
  const clock = new ServerClock();
  const pool = poolOf(address, { max: 1, clock, isReading });
  const sources = systemSources({ now: clock.now, uptime: () => undefined, ...o });
  try {
    if (access !== 'create') await assertMade(pool, address, { isReading });
    if (!isReading) await migrate(pool, address, o.homeId ?? sources.newId);
  } catch (error) {
    throw typed(address.shown, error);
  } finally {
    await pool.end();
  }
  const link = openLink(address, o.onBlocked);
  const { alone: locks } = new HomeLocks(address.schema);
  const db = new PostgresDb(address.shown, { ...link, locks, clock });
  try {
    const base = o.base ?? recordedBase(db) ?? 'tape';
    const store = new ServerHome(
      new Connection({ db, sources }, { base, journal: undefined, readonly: isReading }),
    );
    store.leaseMs = serverLeaseMs;
    if (!isReading) store.catchUp(o);
    return maskedStore(store, maskFor(o.secrets ?? secretsIn(process.env)), redactorFor(o.redact ?? true));
  } catch (error) {
    link.close();
    throw error;
  }
}
