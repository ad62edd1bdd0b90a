import { Client, type ClientBase, type ClientConfig, Pool } from 'pg';
import { TapeError } from '../errors.ts';
import type { Address } from './address.ts';
import { type Answered, type ServerClock, timeQuestion } from './clock.ts';
import { usePasswordFile } from './password-file.ts';

/** How long a server may take to accept a connection. */
const connectMs = 10_000;

/**
 * After how long a connection is probed that is silent: a firewall forgets it after some minutes, without a word to both ends,
 * and one that only listens would wait for ever.
 */
const probeMs = 30_000;

/** The settings of each connection to a home. */
function settingsOf({ url, options }: Pick<Address, 'url' | 'options'>): ClientConfig {
  return {
    connectionString: url,
    application_name: 'tapedeck',
    keepAlive: true,
    keepAliveInitialDelayMillis: probeMs,
    ...(options !== '' && { options }),
  };
}

/** A connection that a server has to accept soon. A pool would take its own limit for the wait for a free one, too. */
class PromptClient extends Client {
  constructor(settings?: ClientConfig | string) {
    super({ ...(settings as ClientConfig), connectionTimeoutMillis: connectMs });
    usePasswordFile(this);
  }
}

/** Makes a connection to a home, which is not open yet. An error while it is idle comes with its next statement. */
export function clientOf(address: Pick<Address, 'url' | 'options'>): Client {
  const client = new PromptClient(settingsOf(address));
  client.on('error', () => {});
  return client;
}

/**
 * Makes a pool of connections to a home. The first of them asks the server what it is, and notes its time.
 * Connecting throws TAPE_CANNOT_OPEN for a pooler that gives each transaction another connection, for a server that only
 * reads where something is to be written, and for a database that cannot hold every text.
 */
export function poolOf(
  address: Address,
  {
    max,
    clock,
    isReading = false,
  }: { readonly max: number; readonly clock: ServerClock; readonly isReading?: boolean },
): Pool {
  let isGreeted = false;
  const begin = async (client: ClientBase) => {
    // First: what a connection of such a pooler sets stays there for others.
    if (!isGreeted) await greet(client, address, { clock, isReading });
    isGreeted = true;
    await client.query(address.begin);
  };
  const pool = new Pool({
    ...settingsOf(address),
    max,
    Client: PromptClient,
    allowExitOnIdle: true,
    onConnect: begin,
  });
  // A connection that fails while it is idle leaves the pool; an act that uses one hears of it by its statements.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

interface Said extends Answered {
  readonly pid: number;
  readonly reads_only: boolean;
  readonly encoding: string;
}

/** Notes the time of the server, and refuses one that cannot have a home, or that cannot be reached by connections. */
async function greet(
  client: ClientBase,
  address: Address,
  { clock, isReading }: { readonly clock: ServerClock; readonly isReading: boolean },
): Promise<void> {
  const said = await clock.measure(async () => {
    const { rows } = await client.query<Said>(
      `SELECT pg_backend_pid() AS pid, pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS reads_only,
         current_setting('server_encoding') AS encoding, now FROM (${timeQuestion}) clock`,
    );
    const [first] = rows;
    if (first === undefined) throw new TypeError('the server says nothing of itself');
    return first;
  });
  if (said.reads_only && !isReading)
    throw refused(
      address,
      'read-only',
      'the server only reads: it follows another one, or its default is read-only',
    );
  if (said.encoding !== 'UTF8')
    throw refused(
      address,
      'encoding',
      `its texts have the encoding ${said.encoding}; make a database with UTF8: CREATE DATABASE NAME ENCODING 'UTF8' TEMPLATE template0`,
    );
  // The server itself says its own number first.
  const { processID: greeted } = client as unknown as { readonly processID: number | null };
  if (greeted !== said.pid && (await isShared(client, address)))
    throw refused(
      address,
      'pooler',
      'a pooler between gives each transaction another connection; use its session mode, or the server itself',
    );
}

/** How often two connections are compared: a pooler may have more than one to give. */
const rounds = 5;

/** Whether a connection changes the process of the server that answers it, or lets another one have it. */
async function isShared(one: Pick<ClientBase, 'query'>, address: Address): Promise<boolean> {
  const other = clientOf(address);
  await other.connect();
  try {
    const first = await pidOf(one);
    for (let round = 0; round < rounds; round += 1) {
      // A pooler gives out the connection that was used last, or that was free longest.
      if ((await pidOf(one)) !== first) return true;
      await other.query('BEGIN');
      const held = await pidOf(other);
      if (held === first || (await pidOf(one)) !== first) return true;
      await other.query('ROLLBACK');
    }
    return false;
  } finally {
    await other.end();
  }
}

async function pidOf(client: Pick<ClientBase, 'query'>): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

function refused({ shown }: Address, reason: string, why: string): TapeError {
  return new TapeError('TAPE_CANNOT_OPEN', `cannot use ${shown}: ${why}`, {
    data: { server: shown, reason },
  });
}
