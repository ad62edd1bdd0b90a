import pg from 'pg';

/**
 * Adds to the schema of a home what a migration of the next version would that only adds, and takes the schema away
 * when the test is done or has failed: it is no place for other tests.
 */
export async function addToSchema(url: string): Promise<AsyncDisposable> {
  await within(url, async (client) => {
    const newest = await client.query('SELECT max(name) AS name FROM migration');
    const { name } = newest.rows[0] as { name: string };
    await client.query(`BEGIN;
      CREATE TABLE later (id bigint PRIMARY KEY);
      ALTER TABLE tape ADD COLUMN later text;
      INSERT INTO migration (name, timestamp) VALUES ('9998', 'now');
      INSERT INTO home (key, value) VALUES ('least', '${name}') ON CONFLICT (key) DO UPDATE SET value = excluded.value;
      COMMIT`);
  });
  return {
    [Symbol.asyncDispose]: () =>
      within(url, async (client, schema) => void (await client.query(`DROP SCHEMA ${schema} CASCADE`))),
  };
}

/** Notes a migration after which this build cannot go on. */
export async function changeSchema(url: string): Promise<void> {
  await within(url, async (client) => {
    await client.query(`UPDATE home SET value = '9999' WHERE key = 'least'`);
    await client.query(`INSERT INTO migration (name, timestamp) VALUES ('9999', 'now')`);
  });
}

async function within(url: string, act: (client: pg.Client, schema: string) => Promise<void>): Promise<void> {
  const schema = new URL(url).searchParams.get('schema') ?? 'tapedeck';
  const client = new pg.Client(url.replace(/\?.*/, ''));
  await client.connect();
  try {
    await client.query(`SET search_path = ${schema}`);
    await act(client, schema);
  } finally {
    await client.end();
  }
}
