import { openPostgresHome, openPostgresStore, type PostgresOptions } from '@tapedeck/tape/postgres';
import pg from 'pg';
import { ownServer } from './postgres-server.ts';

/** A real server for the tests of this process, started by the first that needs it. It runs as a user of its own. */
let started: Promise<string> | undefined;

/** The address of a database on the server. `TAPEDECK_POSTGRES` names one that runs already. */
async function serverUrl(): Promise<string> {
  started ??=
    process.env.TAPEDECK_POSTGRES === undefined ? start() : Promise.resolve(process.env.TAPEDECK_POSTGRES);
  return await started;
}

async function start(): Promise<string> {
  const { url } = await ownServer();
  return url;
}

/** Connections that take places away: to make one costs more than what it is for. */
let cleaners: pg.Pool | undefined;

async function clean(server: string, sql: string): Promise<void> {
  cleaners ??= new pg.Pool({ connectionString: server, max: 2, idleTimeoutMillis: 0, allowExitOnIdle: true });
  // The server may end before this process.
  if (cleaners.listenerCount('error') === 0) cleaners.on('error', () => {});
  await cleaners.query(sql);
}

/** Deletes all rows, also those that triggers keep: an eighth of what TRUNCATE costs, which makes every file anew. */
function emptied(schema: string): string {
  return `DO $$ DECLARE one regclass; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR one IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
      WHERE schemaname = '${schema}' AND tablename NOT LIKE 'migration%'
    LOOP EXECUTE 'DELETE FROM ' || one; END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) FROM pg_sequences
      WHERE schemaname = '${schema}';
  END $$`;
}

let places = 0;
/** Schemas that were emptied: to make one costs ten times as much. */
const empty: string[] = [];

/** The name of a schema that is not there. */
function unmade(): string {
  places += 1;
  return `t${process.pid}_${places}`;
}

/** An empty place on the server: a schema. One that another test has emptied is a home already, unless `isNew` asks for none. */
export async function serverPlace({ isNew = false } = {}) {
  const server = await serverUrl();
  const schema = (isNew ? undefined : empty.pop()) ?? unmade();
  const url = `${server}?schema=${schema}`;
  return {
    url,
    open: (o: PostgresOptions = {}) => openPostgresStore(url, o),
    /** The store whose methods wait for the server. */
    openHome: (o: PostgresOptions = {}) => openPostgresHome(url, o),
    [Symbol.asyncDispose]: async () => {
      try {
        await clean(server, emptied(schema));
        empty.push(schema);
      } catch {
        await clean(server, `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      }
    },
  };
}

/** A new, empty store on the server, which takes its place away at the end. */
export async function serverStore(o: PostgresOptions = {}) {
  const place = await serverPlace();
  const store = await place.open(o);
  const close = store[Symbol.asyncDispose].bind(store);
  return Object.assign(store, {
    [Symbol.asyncDispose]: async () => {
      await close();
      await place[Symbol.asyncDispose]();
    },
  });
}

/** A connection that sees the tables of a home. */
export async function connected(url: string) {
  const client = new pg.Client(url.replace(/\?.*/, ''));
  await client.connect();
  await client.query(`SET search_path = ${new URL(url).searchParams.get('schema')}`);
  return Object.assign(client, { [Symbol.asyncDispose]: async () => await client.end() });
}
