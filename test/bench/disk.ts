import { join } from 'node:path';
import { openTapeStore } from '@tapedeck/tape';
import { payloads, take } from './payload.ts';
import { rawHandle } from './raw.ts';
import { longSize, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, counted, type Row } from './topic.ts';

/** Bytes on disk, without the search index: what an entry takes, and what a fork adds. */
export function disk(bench: Bench): Row[] {
  const entries = longSize(bench);
  const { file, payload } = bytesIn(tapeOf(bench, entries));
  return [
    counted(file / entries, payload / entries, {
      work: `bytes on disk an entry, of ${grouped(entries)}`,
      against: 'bytes of its payload',
      unit: 'bytes',
      goal: { most: 1.35 },
    }),
    ...forks(bench),
  ];
}

function forks(bench: Bench): Row[] {
  const [inherited, count] = bench.size([1000, 1000], [50, 20]);
  const path = join(bench.dir, 'disk-forks.db');
  using store = openTapeStore(path, { durability: 'fast' });
  store.sessions.open('main');
  store.entries.append('main', take(payloads(), inherited));
  const before = bytesIn(path);
  for (let i = 0; i < count; i += 1)
    store.lineage.fork('main', { intention: { nextSteps: 'Check the changelog.' } });
  return [
    counted((bytesIn(path).file - before.file) / count, before.payload, {
      work: `bytes on disk a fork, of ${grouped(count)}`,
      against: `a copy of the ${grouped(inherited)} payloads that it inherits`,
      unit: 'bytes',
    }),
  ];
}

/** The pages of all tables and indexes but the search index, and the payloads. */
function bytesIn(path: string): { file: number; payload: number } {
  const db = rawHandle(path, 'NORMAL');
  try {
    const sum = (sql: string) => db.prepare<[], number>(sql).pluck().get() ?? Number.NaN;
    return {
      file: sum(`SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name NOT LIKE 'entry_fts%'`),
      payload: sum('SELECT sum(octet_length(payload)) FROM entry'),
    };
  } finally {
    db.close();
  }
}
