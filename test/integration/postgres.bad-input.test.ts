import { execFileSync } from 'node:child_process';
import { chownSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { pgBoss, queueState } from '@tapedeck/runtime/pg-boss';
import { TapeError, user } from '@tapedeck/tape';
import { openPostgresHome, openPostgresStore } from '@tapedeck/tape/postgres';
import pg from 'pg';
import { expect, test, vi } from 'vitest';
import { connected, serverPlace } from '../support/postgres.ts';
import { ownServer } from '../support/postgres-server.ts';

const word = 'open-sesame';

/** The error of an address that cannot be opened: the same for both kinds of store, and without its user and password. */
async function refusalOf(url: string): Promise<Pick<TapeError, 'code' | 'message' | 'data'>> {
  const errors: unknown[] = [];
  for (const open of [openPostgresStore, openPostgresHome])
    errors.push(
      await open(url).then(
        () => expect.fail('it was opened'),
        (error: unknown) => error,
      ),
    );
  for (const error of errors) {
    expect(error).toBeInstanceOf(TapeError);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(
      /open-sesame|not a secret|not%20a%20secret|ali-baba/,
    );
  }
  const [one, other] = errors as [TapeError, TapeError];
  expect(other).toMatchObject({ code: one.code, message: one.message });
  return one;
}

/** Changes parts of an address. */
function at(
  url: string,
  change: Partial<Record<'port' | 'username' | 'password' | 'pathname', string>>,
): string {
  return Object.assign(new URL(url), change).href;
}

async function on<Row>(url: string, sql: string): Promise<readonly Row[]> {
  const client = new pg.Client(at(url, {}).replace(/\?.*/, ''));
  await client.connect();
  try {
    return (await client.query(sql)).rows as Row[];
  } finally {
    await client.end();
  }
}

test('a server that cannot be reached or does not take the user is an error that says why, and shows no credentials', async () => {
  await using place = await serverPlace();
  const { url } = place;
  const stranger = { username: 'ali-baba', password: word };
  expect(await refusalOf(at(url, { ...stranger, port: '1' }))).toMatchObject({
    code: 'TAPE_CANNOT_OPEN',
    data: { reason: 'unreachable' },
  });
  const wrong = [at(url, stranger), at(url, { password: word })];
  for (const one of wrong)
    expect(await refusalOf(one)).toMatchObject({ code: 'TAPE_CANNOT_OPEN', data: { reason: 'password' } });
  expect(await refusalOf(at(url, { pathname: '/nowhere' }))).toMatchObject({
    code: 'TAPE_CANNOT_OPEN',
    data: { reason: 'database' },
  });
  for (const odd of [
    `postgres://ali-baba:12/${word}@host/db`,
    `postgres://ali-baba:12#${word}@host/db`,
    `mysql://${word}@host`,
  ])
    expect(await refusalOf(odd)).toMatchObject({ code: 'TAPE_CANNOT_OPEN' });
  expect((await refusalOf(`${url}&sslmode=require`)).data).toMatchObject({ reason: 'tls' });
  expect((await refusalOf(`${url}&sslmode=require&sslrootcert=/nowhere`)).data).toMatchObject({
    reason: 'tls',
  });
  for (const misspelt of ['shema', 'Schema', 'schemas', 'shcema'])
    expect(await refusalOf(`${url.replace('schema=', `${misspelt}=`)}`)).toMatchObject({
      code: 'TAPE_CANNOT_OPEN',
      message: expect.stringContaining(`'${misspelt}'; write schema`),
    });
  expect((await refusalOf(`${url}&options=-c%20nonsense=1`)).data).toMatchObject({ reason: 'options' });
});

test('a schema of another program is refused, and nothing is made in it', async () => {
  await using place = await serverPlace({ isNew: true });
  const schema = new URL(place.url).searchParams.get('schema') ?? '';
  const left = `SELECT count(*)::int AS tables FROM pg_tables WHERE schemaname = '${schema}'`;
  for (const theirs of ['entry (id bigint)', 'migration (version bigint)']) {
    await on(place.url, `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.${theirs}`);
    expect(await refusalOf(place.url)).toMatchObject({
      code: 'TAPE_CANNOT_OPEN',
      data: { reason: 'schema' },
    });
    expect(await on(place.url, left)).toEqual([{ tables: 1 }]);
    await on(place.url, `DROP SCHEMA ${schema} CASCADE`);
  }
});

test('what the server does not do is an error with a code: too slow a statement, too many connections, a text with NUL', async () => {
  await using place = await serverPlace();
  await using store = await place.open();
  await store.sessions.open('main');
  await using impatient = await openPostgresStore(`${place.url}&options=-c%20statement_timeout=200`);
  await using other = await connected(place.url);
  await other.query('BEGIN; LOCK TABLE entry');
  await expect(impatient.entries.append('main', [user('x')])).rejects.toMatchObject({
    code: 'TAPE_IO',
    data: { reason: 'failed' },
  });
  await other.query('ROLLBACK');
  expect((await impatient.entries.append('main', [user('x')])).to).toBe(2);
  await expect(store.lineage.fork('main', { key: 'a\0b' })).rejects.toMatchObject({
    code: 'TAPE_BAD_OPTION',
    data: { reason: 'text' },
  });
  // As in a file: it is the name of no session, and cannot be.
  expect(await store.sessions.find('a\0b')).toBeUndefined();
  await expect(store.sessions.open('a\0b')).rejects.toMatchObject({ code: 'TAPE_BAD_NAME' });
  // A text of many words is looked for by the first of them.
  const long = Array.from({ length: 200_000 }, (_, i) => `w${i}`).join(' ');
  expect((await store.entries.search({ text: long })).hits).toEqual([]);
  const role = `few_${new URL(place.url).searchParams.get('schema')}`;
  await on(place.url, `CREATE ROLE ${role} LOGIN PASSWORD '${word}' CONNECTION LIMIT 0`);
  try {
    expect(await refusalOf(at(place.url, { username: role, password: word }))).toMatchObject({
      code: 'TAPE_IO',
      data: { reason: 'failed' },
    });
  } finally {
    await on(place.url, `DROP ROLE ${role}`);
  }
});

test('a user without a privilege gets an error, and nothing is written; an older or newer schema is left as it is', async () => {
  await using place = await serverPlace();
  const schema = new URL(place.url).searchParams.get('schema') ?? '';
  const role = `reader_${schema}`;
  await on(place.url, `CREATE ROLE ${role} LOGIN PASSWORD '${word}'`);
  const asReader = at(place.url, { username: role, password: word });
  try {
    expect(await refusalOf(asReader.replace(`schema=${schema}`, `schema=new_${schema}`))).toMatchObject({
      code: 'TAPE_CANNOT_OPEN',
      data: { reason: 'privilege' },
    });
    await using owner = await place.open();
    await owner.sessions.open('main');
    const [withoutUsage, reading] = [
      await refusalOf(asReader),
      openPostgresHome(asReader, { access: 'read' }),
    ];
    expect(withoutUsage).toMatchObject({
      code: 'TAPE_CANNOT_OPEN',
      message: expect.stringContaining(`USAGE on the schema '${schema}'`),
      data: { reason: 'privilege' },
    });
    await expect(reading).rejects.toMatchObject({ message: withoutUsage.message });
    await on(
      place.url,
      `GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
    );
    await using reader = await openPostgresStore(asReader);
    expect((await reader.sessions.find('main'))?.head).toBe(1);
    await expect(reader.entries.append('main', [user('x')])).rejects.toMatchObject({
      code: 'TAPE_CANNOT_OPEN',
      data: { reason: 'privilege' },
    });
    expect((await owner.sessions.find('main'))?.head).toBe(1);
    await on(place.url, `DELETE FROM ${schema}.migration`);
    expect(await refusalOf(asReader)).toMatchObject({ code: 'TAPE_SCHEMA_OLDER' });
    await on(place.url, `INSERT INTO ${schema}.migration VALUES ('0001', ''), ('9999', '')`);
    expect(await refusalOf(place.url)).toMatchObject({ code: 'TAPE_SCHEMA_NEWER' });
    expect((await owner.sessions.find('main'))?.head).toBe(1);
  } finally {
    await on(place.url, `DROP SCHEMA IF EXISTS ${schema} CASCADE; DROP ROLE ${role}`);
  }
});

test('settings of a role or a database change neither what is written nor how it is read', async () => {
  await using place = await serverPlace({ isNew: true });
  const odd = Object.entries({
    bytea_output: 'escape',
    extra_float_digits: '-15',
    standard_conforming_strings: 'off',
    default_transaction_isolation: 'serializable',
    jit: 'on',
    idle_session_timeout: '300',
  });
  const options = odd.map(([name, value]) => `-c ${name}=${value}`).join(' ');
  const url = `${place.url}&options=${encodeURIComponent(options)}`;
  await using store = await openPostgresStore(url);
  await store.sessions.open('main');
  const schema = new URL(place.url).searchParams.get('schema');
  await on(
    place.url,
    `CREATE TABLE ${schema}.seen (name text, value text);
     CREATE FUNCTION ${schema}.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       INSERT INTO ${schema}.seen SELECT name, setting FROM pg_settings WHERE name IN (${odd.map(([name]) => `'${name}'`)});
       RETURN NULL; END $$;
     CREATE TRIGGER see AFTER INSERT ON ${schema}.entry EXECUTE FUNCTION ${schema}.see()`,
  );
  const before = Date.now();
  await store.entries.append('main', [user("a \\' b")]);
  const home = await openPostgresHome(url);
  // Longer than the server lets a connection idle.
  await sleep(600);
  home.entries.append('main', [user('c')]);
  expect([...home.verify()]).toEqual([]);
  home.close();
  const seen = await on<{ name: string; value: string }>(place.url, `SELECT * FROM ${schema}.seen`);
  expect(seen).toHaveLength(2 * odd.length);
  for (const setting of odd.map(([name, value]) => ({ name, value })))
    expect(seen).not.toContainEqual(setting);
  await using plain = await place.open();
  const entries = await Array.fromAsync(plain.entries.read('main', { kind: 'message' }));
  expect(entries.map(({ payload }) => payload)).toEqual([user("a \\' b").payload, user('c').payload]);
  // The clock of the server is that of this machine.
  for (const { at } of entries) expect(Math.abs(at - before)).toBeLessThan(60_000);
  await on(place.url, `DROP SCHEMA ${schema} CASCADE`);
});

test('a database that cannot hold every text is refused', async () => {
  await using place = await serverPlace();
  await on(place.url, `CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0`);
  try {
    expect(await refusalOf(at(place.url, { pathname: '/ascii' }))).toMatchObject({
      code: 'TAPE_CANNOT_OPEN',
      data: { reason: 'encoding' },
    });
  } finally {
    await on(place.url, 'DROP DATABASE ascii');
  }
});

test('the engine of workers refuses what the store refuses, shows no credentials, and ends a job that is no run', async () => {
  await using place = await serverPlace();
  const { url } = place;
  for (const odd of [
    `postgres://ali-baba:${word}@127.0.0.1:99999/deck`,
    at(url, { username: 'ali-baba', password: word }),
    at(url, { username: 'ali-baba', password: word, port: '1' }),
  ])
    for (const ask of [
      async () => await queueState(odd),
      async () => await pgBoss(odd).start({ id: 'x', depth: 1 }),
    ]) {
      const error = await ask().then(
        () => expect.fail('it was done'),
        (refused: unknown) => refused,
      );
      expect(error).toMatchObject({ code: 'TAPE_CANNOT_OPEN' });
      expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/open-sesame|ali-baba/);
    }
  const begun = Promise.withResolvers<string>();
  const worker = pgBoss(url, { concurrency: 1, maxDepth: 1 });
  await worker.work(async ({ id }) => begun.resolve(id));
  const schema = `${new URL(url).searchParams.get('schema')}_boss`;
  await on(url, `INSERT INTO ${schema}.job (name, data) VALUES ('depth1', 'null'), ('depth1', '{}')`);
  await worker.start({ id: 'a-run', depth: 1 });
  expect(await begun.promise).toBe('a-run');
  await vi.waitFor(
    async () => expect(await queueState(url)).toMatchObject({ waiting: 0, running: 0 }),
    60_000,
  );
  await worker.stop();
  await on(url, `DROP SCHEMA ${schema} CASCADE`);
});

test('over TLS, a server whose certificate is not trusted is refused; one that restarts loses nothing', async () => {
  await using server = await ownServer((data) => {
    const [key, certificate] = [join(data, 'server.key'), join(data, 'server.crt')];
    const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
        ...subject,
        '-keyout',
        key,
        '-out',
        certificate,
      ],
      { stdio: 'pipe' },
    );
    const { uid, gid } = statSync(data);
    for (const file of [key, certificate]) chownSync(file, uid, gid);
    return ['-c', 'ssl=on'];
  });
  const [{ directory = '' } = {}] = await on<{ directory: string }>(
    server.url,
    `SELECT current_setting('data_directory') AS directory`,
  );
  expect((await refusalOf(`${server.url}?sslmode=require`)).data).toMatchObject({ reason: 'tls' });
  const url = `${server.url}?sslmode=require&sslrootcert=${join(directory, 'server.crt')}`;
  await using store = await openPostgresStore(url, { connections: 2 });
  const safe = await on<{ ssl: boolean }>(
    server.url,
    `SELECT bool_and(ssl) AS ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tapedeck'`,
  );
  expect(safe).toEqual([{ ssl: true }]);
  await store.sessions.open('main');
  const home = await openPostgresHome(url);
  const seen = home.changes();
  const restarting = server.restart();
  for (let time = 0; time < 60; )
    try {
      await store.entries.append('main', [user(`entry ${time}`)], { key: `k${time}` });
      time += 1;
      if (time === 30) await restarting;
    } catch (error) {
      expect(error).toMatchObject({ code: expect.stringMatching(/^TAPE_(?:IO|CANNOT_OPEN)$/) });
    }
  const entries = await Array.fromAsync(store.entries.read('main', { kind: 'message' }));
  expect(entries.map(({ key }) => key)).toEqual(Array.from({ length: 60 }, (_, time) => `u:k${time}`));
  // The connection of the other one is made anew, too, while nothing asks for it.
  await expect.poll(() => home.changes(), { timeout: 10_000 }).not.toBe(seen);
  expect(home.sessions.find('main')?.head).toBe(61);
  home.close();
  expect(await Array.fromAsync(store.verify())).toEqual([]);
});
