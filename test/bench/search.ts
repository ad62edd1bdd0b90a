import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { measure, median, type Sample, type Work } from './measure.ts';
import { bytesOf, needle, payloads, take } from './payload.ts';
import { longSize, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, counted, type Row } from './topic.ts';

/** At least this many times as fast as the scan. */
const faster = 40;

/** Search with its index, against looking through the bytes of the same entries; and what the index costs. */
export function search(bench: Bench): Row[] {
  const entries = longSize(bench);
  using store = openTapeStore(tapeOf(bench, entries), { durability: 'fast' });
  const file = asLines(store, join(bench.dir, 'entries.jsonl'));
  const indexing = indexed(store, entries);
  const found = store.entries.search({ text: needle, limit: 1000 }).hits.length;
  const scanned = scan(file, needle);
  if (found !== scanned) throw new Error(`the search found ${found} entries, and the scan ${scanned}`);
  const samples = measure(
    {
      scan: { act: () => scan(file, needle) },
      rare: { act: () => store.entries.search({ text: needle }) },
      phrase: { act: () => store.entries.search({ text: 'ta pe' }) },
      none: { act: () => store.entries.search({ text: 'nothing-of-the-kind' }) },
    },
    { rounds: bench.size(9, 3), times: bench.size(2, 1) },
  );
  const row = (sample: readonly number[], what: string) =>
    compared(sample, samples.scan, {
      work: `search of ${grouped(entries)} entries for ${what}`,
      against: 'byte scan of the same entries as JSONL',
      unit: 'ms',
      goal: { most: 1 / faster },
    });
  return [
    row(samples.rare, 'a rare word'),
    row(samples.phrase, 'two common words'),
    row(samples.none, 'what is not there'),
    ...seenByMany(bench, store, samples.rare),
    counted(indexing, batchAppend(bench), {
      work: 'indexing an entry, after it was written',
      against: "appending it in a batch, durability 'fast'",
      unit: 'µs',
    }),
  ];
}

/** A hit names the sessions that see it: forks of a session must not make searching it slow. */
function seenByMany(bench: Bench, store: SqliteTapeStore, before: Sample): Row[] {
  const forks = bench.size(1000, 20);
  for (let i = 0; i < forks; i += 1) store.lineage.fork('main');
  const { after } = measure(
    { after: { act: () => store.entries.search({ text: needle }) } },
    { rounds: before.length, times: bench.size(2, 1) },
  );
  return [
    compared(after, before, {
      work: `search for a rare word that ${grouped(forks)} forks see too`,
      against: 'the same without the forks',
      unit: 'ms',
    }),
  ];
}

/** Microseconds an entry. */
function indexed(store: SqliteTapeStore, entries: number): number {
  store.dropSearchIndex();
  const start = performance.now();
  store.fillSearchIndex();
  return ((performance.now() - start) * 1000) / entries;
}

function batchAppend(bench: Bench): number {
  using store = openTapeStore(join(bench.dir, 'search-batch.db'), { durability: 'fast' });
  store.sessions.open('main');
  const drafts = take(payloads(), bench.size(1000, 50));
  const work: Work = { act: () => store.entries.append('main', drafts) };
  const { append } = measure({ append: work }, { rounds: bench.size(10, 3), times: 1 });
  return median(append) / drafts.length;
}

function asLines(store: SqliteTapeStore, file: string): string {
  const fd = openSync(file, 'w');
  for (const { payload } of store.entries.read('main'))
    writeSync(fd, `${bytesOf({ kind: 'message', payload })}\n`);
  closeSync(fd);
  return file;
}

/** How many lines hold the text, the file being read anew, as a program does that keeps nothing. */
function scan(file: string, text: string): number {
  const bytes = readFileSync(file);
  let count = 0;
  for (let at = bytes.indexOf(text); at !== -1; ) {
    count += 1;
    const end = bytes.indexOf(10, at);
    at = end === -1 ? -1 : bytes.indexOf(text, end);
  }
  return count;
}
