import { type EntryKind, openTapeStore, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { tapeHere } from '../support/cli.ts';
import { hashed, sha256 } from '../support/format-hash.ts';
import { rawDb } from '../support/raw-db.ts';
import { tempDir } from '../support/temp-dir.ts';
import { codeBlocks, page, tableAfter } from './pages.ts';

const format = page('docs/format.md');

interface WorkedEntry {
  readonly seq: number;
  readonly kind: string;
  readonly mark: string | null;
  readonly name: string | null;
  readonly ref: number | null;
  readonly at: number;
  readonly key: string | null;
  readonly salt: string;
  readonly payload: string;
  readonly meta: string | null;
  readonly body_hash: string;
  readonly hash: string;
}

interface Worked {
  readonly main: { readonly ulid: string; readonly genesis: string; readonly entries: WorkedEntry[] };
  readonly child: { readonly ulid: string; readonly base_hash: string; readonly entries: WorkedEntry[] };
}

const [example = '{}'] = codeBlocks(format, 'json');
const worked = JSON.parse(example) as Worked;
const lines = (codeBlocks(format, 'jsonl')[0] ?? '').trimEnd().split('\n');

/** Checks a chain of entries from what its first one follows. */
function checkChain(ulid: string, entries: readonly WorkedEntry[], first: string): void {
  let previous = first;
  for (const entry of entries) {
    expect(entry.body_hash).toBe(sha256(`${entry.salt}${entry.payload}\n${entry.meta ?? ''}`));
    expect(entry.hash).toBe(sha256(hashed(ulid, entry, { body: entry.body_hash, previous })));
    previous = entry.hash;
  }
}

test('the hashes of the worked example follow from the rules on the page', () => {
  const { main, child } = worked;
  expect(main.genesis).toBe(sha256(JSON.stringify(['tape.genesis.v1', main.ulid])));
  checkChain(main.ulid, main.entries, main.genesis);
  expect(child.base_hash).toBe(main.entries.at(-1)?.hash);
  checkChain(child.ulid, child.entries, child.base_hash);
  const [first, second] = main.entries;
  if (first === undefined || second === undefined) throw new Error('the example has two entries of main');
  const text = hashed(main.ulid, second, { body: second.body_hash, previous: first.hash });
  expect(codeBlocks(format, 'text')).toContain(`${text}\n`);
});

test('the page, the README and the files have one schema version', () => {
  using dir = tempDir();
  openTapeStore(dir.file('tape.db')).close();
  using db = rawDb(dir.file('tape.db'));
  const [{ user_version: version } = { user_version: 0 }] = db.all<{ user_version: number }>(
    'PRAGMA user_version',
  );
  expect(version).toBeGreaterThan(0);
  expect(format).toContain(`schema version ${version}.`);
  expect(page('README.md')).toContain(`[schema version ${version}]`);
  expect(tableAfter(format, 'Schema versions').at(-1)?.[0]).toBe(String(version));
});

test('the lines of the worked example are chained', () => {
  const [first = '{}', second = '{}'] = lines;
  expect(JSON.parse(first).prev).toBe('0'.repeat(64));
  expect(JSON.parse(second).prev).toBe(sha256(first));
});

interface Row {
  readonly tape: string;
  readonly salt: Uint8Array;
  readonly body_hash: Uint8Array;
  readonly hash: Uint8Array;
}

test('the store writes the worked example', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  let ids = 0;
  let salts = 0;
  const store = openTapeStore(path, {
    now: () => 1795255200000,
    newId: () => `01JD${String(++ids).padStart(22, '0')}`,
    salt: () => new Uint8Array(16).fill(++salts),
  });
  store.sessions.open('main');
  store.entries.append('main', [user('Hello.')], { key: 'hello' });
  store.lineage.fork('main', { name: 'child' });
  store.close();

  const db = new Database(path, { readonly: true });
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
  const rows = db
    .prepare<[], Row>(
      `SELECT t.name AS tape, seq, e.kind, mark, e.name, ref, at, key, salt, payload, meta, body_hash, hash
         FROM entry e JOIN tape t ON t.id = e.tape_id ORDER BY e.id`,
    )
    .all()
    .map((row) => ({
      ...row,
      salt: hex(row.salt),
      body_hash: hex(row.body_hash),
      hash: hex(row.hash),
    }));
  expect(rows).toEqual([
    ...worked.main.entries.map((entry) => ({ tape: 'main', ...entry })),
    ...worked.child.entries.map((entry) => ({ tape: 'child', ...entry })),
  ]);
  const recorded = db.prepare<[], { line: string }>('SELECT line FROM lineage ORDER BY g').all();
  expect(recorded.map(({ line }) => line)).toEqual(lines);
  db.close();
});

test('the page lists every table with its columns, every index and every trigger', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  openTapeStore(path).close();
  const db = new Database(path, { readonly: true });
  const named = (type: string) =>
    db
      .prepare<[string], { name: string }>(
        `SELECT name FROM sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'entry_fts%'`,
      )
      .all(type)
      .map(({ name }) => name);
  const documented = [...format.matchAll(/^### Table (\w+)$/gm)].map((heading) => heading[1] ?? '');
  expect(documented.toSorted()).toEqual(named('table').toSorted());
  for (const table of documented) {
    const columns = db.pragma(`table_info(${table})`) as { name: string }[];
    expect({ table, columns: tableAfter(format, `Table ${table}`).map(([name]) => name) }).toEqual({
      table,
      columns: columns.map(({ name }) => name),
    });
  }
  expect(tableAfter(format, 'Indexes').map(([name]) => name)).toEqual(named('index'));
  expect(tableAfter(format, 'Triggers').map(([name]) => name)).toEqual(named('trigger'));
  db.close();
});

test('verify.py looks for every index and trigger of the page', () => {
  const program = page('docs/verify.py');
  const texts = [...program.matchAll(/\b(trigger|index|table):(\w+):([0-9a-f]{16})\b/g)];
  const named = (type: string) => texts.flatMap(([, of, name]) => (of === type ? [name] : []));
  expect(named('index')).toEqual(tableAfter(format, 'Indexes').map(([name]) => name));
  expect(named('trigger')).toEqual(tableAfter(format, 'Triggers').map(([name]) => name));
  const block = codeBlocks(format, 'text').find((text) => text.startsWith('trigger '));
  expect(texts.map(([, type, name, digest]) => `${type} ${name} ${digest}`)).toEqual(
    block?.trimEnd().split('\n'),
  );
});

/** Every kind of entry; one that is missing here does not compile. */
const kinds: Readonly<Record<Exclude<EntryKind, `x-${string}`>, true>> = {
  message: true,
  'tool-result': true,
  anchor: true,
  compaction: true,
  rewind: true,
  redaction: true,
  result: true,
  status: true,
  event: true,
  ui: true,
};

test('the page lists every kind of entry, and no other', () => {
  const told = new Set(tableAfter(format, 'Entry kinds').map(([kind]) => kind));
  expect([...told].toSorted()).toEqual([...Object.keys(kinds), 'x-…'].toSorted());
});

test('tape log finds the entries of every kind', async () => {
  using dir = tempDir();
  const tape = async (...argv: readonly string[]) =>
    await tapeHere(argv, { cwd: dir.path, env: { HOME: dir.path } });
  await tape('new', 'main');
  for (const kind of [...Object.keys(kinds), 'x-mine'])
    expect({ kind, ...(await tape('log', 'main', '--kind', kind)) }).toMatchObject({ kind, code: 0 });
});

test('the page has the texts of the schema', () => {
  using dir = tempDir();
  openTapeStore(dir.file('tape.db')).close();
  using db = rawDb(dir.file('tape.db'));
  const objects = db.all<{ type: string; name: string; sql: string }>(
    `SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*' AND name NOT GLOB 'entry_fts_*'`,
  );
  const texts = objects.map(({ type, name, sql }) => `${type} ${name} ${sha256(sql).slice(0, 16)}`);
  const block = codeBlocks(format, 'text').find((text) => text.startsWith('trigger '));
  expect(block?.trimEnd().split('\n').sort()).toEqual(texts.sort());
});
