import { join } from 'node:path';
import { openTapeStore, type SqliteTapeStore, view } from '@tapedeck/tape';
import type Database from 'better-sqlite3';
import { measureBoth } from './measure.ts';
import { payloads, take } from './payload.ts';
import { rawHandle } from './raw.ts';
import { endWithTail, longSize, manySessions, sizes, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** Reading what is there: the last view, all of a history, a history in pieces, and the list of sessions. */
export function read(bench: Bench): Row[] {
  return [...views(bench), ...whole(bench), ...chain(bench), ...list(bench)];
}

function views(bench: Bench): Row[] {
  using stack = new DisposableStack();
  const open = sizes(bench).map((entries) => {
    const path = tapeOf(bench, entries);
    const store = stack.use(openTapeStore(path, { durability: 'fast' }));
    const from = endWithTail(store);
    const db = stack.adopt(rawHandle(path, 'NORMAL'), (handle) => handle.close());
    return { entries, look: () => view(store.views.entries('main')), raw: rawTail(db, from) };
  });
  const { cpu: samples } = measureBoth(
    Object.fromEntries(
      open.flatMap(({ entries, look, raw }) => [
        [`view ${entries}`, { act: look }],
        [`raw ${entries}`, { act: raw }],
      ]),
    ),
    { rounds: bench.size(30, 3), times: bench.size(20, 3) },
  );
  const [shortest = 0, ...longer] = open.map(({ entries }) => entries);
  return [
    ...open.map(({ entries }) =>
      compared(samples[`view ${entries}`] ?? [], samples[`raw ${entries}`] ?? [], {
        work: `last view of ${grouped(entries)} entries, store open (CPU)`,
        against: 'raw SELECT of the same rows and JSON.parse',
        unit: 'µs',
        goal: { most: 3.7 },
      }),
    ),
    ...longer.slice(-1).map((entries) =>
      compared(samples[`view ${entries}`] ?? [], samples[`view ${shortest}`] ?? [], {
        work: `last view of ${grouped(entries)} entries, store open (CPU)`,
        against: `last view of ${grouped(shortest)} entries`,
        unit: 'µs',
        goal: { most: 1.2 },
      }),
    ),
  ];
}

function rawTail(db: Database.Database, from: number): () => number {
  const select = db
    .prepare<[number], string>('SELECT payload FROM entry WHERE tape_id = 1 AND seq >= +? ORDER BY seq')
    .pluck();
  return () => parseAll(select.all(from));
}

function parseAll(texts: readonly string[]): number {
  let count = 0;
  for (const text of texts) if (JSON.parse(text) !== undefined) count += 1;
  return count;
}

/**
 * All entries one by one, against the payloads in the order of the tape, and in the order in which they lie in the file,
 * which spares the index: that order is the tape's only in a home of one session.
 */
function whole(bench: Bench): Row[] {
  const entries = longSize(bench);
  const path = tapeOf(bench, entries);
  using stack = new DisposableStack();
  const store = stack.use(openTapeStore(path, { readonly: true }));
  const db = stack.adopt(rawHandle(path, 'NORMAL'), (handle) => handle.close());
  const inOrderOf = (column: string, of: string) => {
    const page = db.prepare<[number], { at: number; payload: string }>(
      `SELECT ${column} AS at, payload FROM entry WHERE ${of} ${column} > +? ORDER BY ${column} LIMIT 1000`,
    );
    return () => {
      for (let after = 0; ; ) {
        const rows = page.all(after);
        parseAll(rows.map(({ payload }) => payload));
        if (rows.length === 0) return;
        after = rows.at(-1)?.at ?? after;
      }
    };
  };
  const { cpu: samples } = measureBoth(
    {
      file: { act: inOrderOf('id', '') },
      tape: { act: inOrderOf('seq', 'tape_id = 1 AND') },
      store: { act: () => readAll(store, 'main') },
    },
    { rounds: bench.size(9, 3), times: 1 },
  );
  const work = `read of all ${grouped(entries)} entries, one by one (CPU)`;
  return [
    compared(samples.store, samples.tape, {
      work,
      against: 'raw SELECT of the payloads in the order of the tape and JSON.parse',
      unit: 'ms',
      goal: { most: 2 },
    }),
    compared(samples.store, samples.file, {
      work,
      against: 'raw SELECT of the payloads in the order of the file and JSON.parse',
      unit: 'ms',
    }),
  ];
}

function readAll(store: SqliteTapeStore, session: string): number {
  let count = 0;
  for (const { seq } of store.entries.read(session)) count += seq > 0 ? 1 : 0;
  return count;
}

/** The same entries on one tape, and on a hundred that were forked each from the one before. */
function chain(bench: Bench): Row[] {
  using store = openTapeStore(join(bench.dir, 'chain.db'), { durability: 'fast' });
  const [levels, each] = bench.size([100, 20], [10, 5]);
  const next = payloads(3);
  store.sessions.open('flat');
  store.sessions.open('chain-0');
  for (let level = 0; level < levels; level += 1) {
    const drafts = take(next, each);
    if (level > 0) store.lineage.fork(`chain-${level - 1}`, { name: `chain-${level}` });
    store.entries.append(`chain-${level}`, drafts);
    // The mark that a fork begins with has a twin, so that both have as many entries.
    store.entries.append('flat', [
      ...(level > 0 ? [{ kind: 'event', name: 'level', payload: {} } as const] : []),
      ...drafts,
    ]);
  }
  const last = `chain-${levels - 1}`;
  const count = readAll(store, last);
  if (count !== readAll(store, 'flat')) throw new Error('the two histories differ in length');
  const { cpu: samples } = measureBoth(
    { flat: { act: () => readAll(store, 'flat') }, chain: { act: () => readAll(store, last) } },
    { rounds: bench.size(20, 3), times: bench.size(3, 1) },
  );
  return [
    compared(samples.chain, samples.flat, {
      work: `read of ${grouped(count)} entries through ${grouped(levels)} forks (CPU)`,
      against: 'the same entries on one tape',
      unit: 'ms',
      goal: { most: 1.7 },
    }),
  ];
}

function list(bench: Bench): Row[] {
  const path = manySessions(bench);
  using stack = new DisposableStack();
  const store = stack.use(openTapeStore(path, { readonly: true }));
  const db = stack.adopt(rawHandle(path, 'NORMAL'), (handle) => handle.close());
  const select = db.prepare('SELECT * FROM tape ORDER BY updated_at DESC, id DESC');
  const count = store.sessions.list().length;
  if (count !== select.all().length) throw new Error('the two lists differ in length');
  const { cpu: samples } = measureBoth(
    { raw: { act: () => select.all() }, store: { act: () => store.sessions.list() } },
    { rounds: bench.size(15, 3), times: bench.size(3, 1) },
  );
  return [
    compared(samples.store, samples.raw, {
      work: `list of ${grouped(count)} sessions (CPU)`,
      against: 'raw SELECT of the same rows',
      unit: 'ms',
      goal: { most: 1.5 },
    }),
  ];
}
