import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTapeStore, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { afterAll, test } from 'vitest';

const dir = mkdtempSync(join(tmpdir(), 'tapedeck-bench-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const text = 'x'.repeat(1200);

/** A store with one session of so many entries. */
function storeOf(entries: number): SqliteTapeStore {
  const store = openTapeStore(join(dir, `${entries}.db`));
  store.session('main');
  for (let n = 0; n < entries; n += 1000)
    store.append(
      'main',
      Array.from({ length: Math.min(1000, entries - n) }, () => user(text)),
    );
  return store;
}

/** The physical limit: the same bytes, as durable, with nothing else. */
function rawInsert(): () => void {
  const db = new Database(join(dir, 'raw.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE entry (id INTEGER PRIMARY KEY, payload TEXT NOT NULL) STRICT');
  const insert = db.prepare('INSERT INTO entry (payload) VALUES (?)');
  return () => {
    insert.run(text);
  };
}

test('a durable append, against a bare durable insert of the same bytes', async ({ bench }) => {
  const store = storeOf(1000);
  await bench.compare(
    bench('bare insert', rawInsert()),
    bench('append', () => {
      store.append('main', [user(text)]);
    }),
    { time: 1500 },
  );
});

test('a fork and the last view, of a long session against a short one', async ({ bench }) => {
  const [short, long] = [storeOf(2000), storeOf(100_000)];
  for (const store of [short, long])
    store.append('main', [{ kind: 'anchor', mark: 'boundary', name: 'late', payload: { state: {} } }]);
  const fork = (store: SqliteTapeStore) => () => {
    store.fork('main');
  };
  const look = (store: SqliteTapeStore) => () => {
    view(store.viewEntries('main'));
  };
  await bench.compare(bench('fork at 2,000', fork(short)), bench('fork at 100,000', fork(long)), {
    time: 1000,
  });
  await bench.compare(bench('view at 2,000', look(short)), bench('view at 100,000', look(long)), {
    time: 500,
  });
});
