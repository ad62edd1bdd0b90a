import { assistant, openTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { page } from '../docs/pages.ts';
import { bossCrew, recordOf } from '../support/boss.ts';
import { addToSchema, changeSchema } from '../support/newer-schema.ts';
import { connected, serverPlace } from '../support/postgres.ts';
import { rawDb } from '../support/raw-db.ts';
import { tempDir } from '../support/temp-dir.ts';

test('processes of this build go on while a newer one adds to the schema, and others of this build can join them', async () => {
  await using place = await serverPlace();
  await using before = await place.open();
  await before.sessions.open('main');
  await using _later = await addToSchema(place.url);
  await before.entries.append('main', [user('one')]);
  {
    await using joined = await place.open();
    await joined.entries.append('main', [assistant('two')]);
    await joined.lineage.fork('main', { name: 'child' });
  }
  await before.entries.append('child', [assistant('three')]);
  expect((await before.lineage.merge('child')).state).toBe('merged');
  await changeSchema(place.url);
  await expect(place.open()).rejects.toMatchObject({ code: 'TAPE_SCHEMA_NEWER' });
});

test('workers of this build finish what they run while a newer one adds to the schema, and others can join them', async () => {
  await using place = await serverPlace();
  await using store = await place.open();
  await using crew = await bossCrew({ url: place.url, store }, { children: 6, workers: 1, concurrency: 2 });
  const lead = await crew.lead();
  const first = await lead.busy(2);
  await using _later = await addToSchema(place.url);
  const joined = await crew.start();
  expect(await lead.delegation).toMatchObject([{ status: 'completed', text: 'all done' }]);
  first.signal('SIGTERM');
  await first.ended;
  const last = await crew.lead('last-lead');
  expect(await last.delegation).toMatchObject([{ status: 'completed', text: 'all done' }]);
  expect(joined.begun.length).toBeGreaterThan(0);
  for (const name of ['lead', 'last-lead']) {
    const { heads: _, ...record } = await recordOf(store, name);
    expect(record).toEqual({ results: 6, merged: 6, merges: 6, repeatedMerges: 0, steps: [4], errors: [] });
  }
}, 600_000);

test('a schema has the tables, columns and indexes of a file, and what the page on the format names beside them', async () => {
  await using place = await serverPlace();
  await (await place.open())[Symbol.asyncDispose]();
  await using client = await connected(place.url);
  const schema = new URL(place.url).searchParams.get('schema');
  const names = async (sql: string) =>
    (await client.query<{ name: string }>(sql, [schema])).rows.map(({ name }) => name).sort();
  const columns = await names(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns WHERE table_schema = $1`,
  );
  const indexes = await names(`SELECT indexname AS name FROM pg_indexes WHERE schemaname = $1`);
  const triggers = await names(
    `SELECT DISTINCT trigger_name AS name FROM information_schema.triggers WHERE trigger_schema = $1`,
  );

  using dir = tempDir();
  openTapeStore(dir.file('tape.db')).close();
  using db = rawDb(dir.file('tape.db'));
  const inFile = db
    .all<{ name: string }>(
      `SELECT m.name || '.' || c.name AS name FROM sqlite_schema m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'entry_fts%'`,
    )
    .map(({ name }) => name);
  const onlyThere = columns.filter((name) => !inFile.includes(name));
  expect(inFile.filter((name) => !columns.includes(name))).toEqual([]);
  expect(new Set(onlyThere.map((name) => name.split('.')[0]))).toEqual(
    new Set(['entry_text', 'migration', 'migration_lock']),
  );
  const named = db
    .all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`)
    .map(({ name }) => name);
  expect(named.filter((name) => !indexes.includes(name))).toEqual([]);

  const [, section = ''] = page('docs/format.md').split('## The schema on a server');
  const told = [...(section.split('\n## ')[0]?.matchAll(/`(\w+)`/g) ?? [])].map(([, name]) => name);
  for (const name of ['entry_text', 'migration', 'migration_lock', 'entry_text_words', ...triggers])
    expect(told).toContain(name);
});
