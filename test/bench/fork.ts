import { closeSync, fdatasyncSync, openSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { assistant, openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { measure, type Work } from './measure.ts';
import { rawHandle, rawTable } from './raw.ts';
import { graphOf, longSize, sizes, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, counted, type Row } from './topic.ts';

/** Twenty pages: what a fork writes lies in fourteen tables and indexes, and now and then a page is split. */
const walBudget = 80 * 1024;
const request = { intention: { nextSteps: 'Check the changelog.' } };

/** Forks and merges, which must cost the same however long the history is. */
export function fork(bench: Bench): Row[] {
  return [...flat(bench), ...copied(bench), ...durable(bench), ...merges(bench)];
}

/** Without waiting for the disk, so that nothing hides what grows. */
function flat(bench: Bench): Row[] {
  using open = openAll(bench, 'fast');
  const samples = measure(
    Object.fromEntries(
      open.stores.map(({ entries, store }) => [entries, { act: () => store.lineage.fork('main', request) }]),
    ),
    { rounds: bench.size(30, 3), times: bench.size(20, 3) },
  );
  const [shortest = 0, ...longer] = open.stores.map(({ entries }) => entries);
  const base = samples[shortest] ?? [];
  return [
    ...longer.map((entries) =>
      compared(samples[entries] ?? [], base, {
        work: `fork at ${grouped(entries)} entries`,
        against: `fork at ${grouped(shortest)} entries`,
        unit: 'µs',
        goal: { most: 1.2 },
      }),
    ),
    ...open.stores.map(({ entries, path, store }) =>
      counted(walOfFork(path, store), walBudget, {
        work: `write-ahead log of a fork at ${grouped(entries)} entries`,
        against: 'a budget of 80 KB',
        unit: 'bytes',
        goal: { most: 1 },
      }),
    ),
  ];
}

function walOfFork(path: string, store: SqliteTapeStore): number {
  store.checkpoint();
  store.lineage.fork('main', request);
  const before = statSync(`${path}-wal`).size;
  const times = 8;
  for (let i = 0; i < times; i += 1) store.lineage.fork('main', request);
  return (statSync(`${path}-wal`).size - before) / times;
}

/** A fork without references: a copy of the parent's rows in another file, and nothing else. */
function copied(bench: Bench): Row[] {
  const entries = longSize(bench);
  const path = tapeOf(bench, entries);
  using stack = new DisposableStack();
  const store = stack.use(openTapeStore(path, { durability: 'fast' }));
  const db = stack.adopt(rawHandle(join(bench.dir, 'copied.db'), 'NORMAL'), (handle) => handle.close());
  db.prepare('ATTACH ? AS parent').run(path);
  db.exec('CREATE TABLE copied AS SELECT * FROM parent.entry LIMIT 0');
  const copy = db.prepare('INSERT INTO copied SELECT * FROM parent.entry WHERE tape_id = 1');
  const samples = measure(
    {
      copy: { prepare: () => db.exec('DELETE FROM copied'), act: () => copy.run() },
      fork: { act: () => store.lineage.fork('main', request) },
    },
    { rounds: bench.size(5, 3), times: 1 },
  );
  return [
    compared(samples.fork, samples.copy, {
      work: `fork at ${grouped(entries)} entries`,
      against: 'raw copy of its rows',
      unit: 'ms',
    }),
  ];
}

/** A fork waits for the disk twice: for the database and for the graph file. */
function durable(bench: Bench): Row[] {
  const path = tapeOf(bench, longSize(bench));
  using journal = openJournal(graphOf(path));
  using store = openTapeStore(path, { journal });
  using raw = rawTable(join(bench.dir, 'fork-raw.db'), 'FULL');
  const fd = openSync(join(bench.dir, 'fork-raw.jsonl'), 'a');
  const line = `${'x'.repeat(800)}\n`;
  const samples = measure(
    {
      raw: {
        act: () => {
          raw.insert(line);
          writeSync(fd, line);
          fdatasyncSync(fd);
        },
      },
      store: { act: () => store.lineage.fork('main', request) },
    },
    { rounds: bench.size(20, 3), times: bench.size(20, 3) },
  );
  closeSync(fd);
  return [
    compared(samples.store, samples.raw, {
      work: 'durable fork, with its line in the graph file',
      against: 'a raw insert and a line in a file, both synced',
      unit: 'µs',
    }),
  ];
}

/** Merges of children that have said one thing each, into the shortest and the longest history. */
function merges(bench: Bench): Row[] {
  using open = openAll(bench, 'full');
  const [short, long] = [open.stores[0], open.stores.at(-1)];
  if (short === undefined || long === undefined) return [];
  const two = [user('What is left to do?'), assistant('The changelog and the tests.')];
  const samples = measure(
    {
      short: merging(short.store),
      long: merging(long.store),
      append: { act: () => long.store.entries.append('main', two) },
    },
    { rounds: bench.size(25, 3), times: bench.size(10, 2) },
  );
  return [
    compared(samples.long, samples.append, {
      work: `durable merge at ${grouped(long.entries)} entries`,
      against: 'durable append of two entries',
      unit: 'µs',
      goal: { most: 3 },
    }),
    compared(samples.long, samples.short, {
      work: `durable merge at ${grouped(long.entries)} entries`,
      against: `durable merge at ${grouped(short.entries)} entries`,
      unit: 'µs',
      goal: { most: 1.2 },
    }),
  ];
}

function merging(store: SqliteTapeStore): Work {
  let children: readonly string[] = [];
  return {
    prepare: (times) => {
      children = Array.from({ length: times }, () => {
        const { session } = store.lineage.fork('main', request);
        store.entries.append(session, [assistant('The changelog is complete.')]);
        return session;
      });
    },
    act: (i) => store.lineage.merge(children[i] ?? ''),
  };
}

interface Opened extends Disposable {
  readonly stores: readonly {
    readonly entries: number;
    readonly path: string;
    readonly store: SqliteTapeStore;
  }[];
}

function openAll(bench: Bench, durability: 'full' | 'fast'): Opened {
  const stores = sizes(bench).map((entries) => {
    const path = tapeOf(bench, entries);
    return { entries, path, store: openTapeStore(path, { durability }) };
  });
  return {
    stores,
    [Symbol.dispose]: () => {
      for (const { store } of stores) store.close();
    },
  };
}
