import { openTapeStore } from '@tapedeck/tape';
import { numberOf } from './child.ts';
import { gather } from './measure.ts';
import { endWithTail, sizes, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/**
 * Says how many microseconds of the processor opening and the last view took, the modules being loaded. What loading
 * them left is collected before: otherwise it depends on chance whether the collection is counted.
 */
const ourView = `
  import { openTapeStore, view } from '@tapedeck/tape';
  const [path] = process.argv.slice(1);
  gc();
  const before = process.cpuUsage();
  const store = openTapeStore(path, { readonly: true });
  view(store.views.entries('main'));
  const { user, system } = process.cpuUsage(before);
  console.log(user + system);
  store.close();`;

const rawView = `
  import Database from 'better-sqlite3';
  const [path, from] = process.argv.slice(1);
  gc();
  const before = process.cpuUsage();
  const db = new Database(path, { readonly: true });
  const select = db.prepare('SELECT payload FROM entry WHERE tape_id = 1 AND seq >= +? ORDER BY seq').pluck();
  select.all(Number(from)).map((text) => JSON.parse(text));
  const { user, system } = process.cpuUsage(before);
  console.log(user + system);
  db.close();`;

/** A process that has just begun opens a store and reads the last view. */
export async function open(bench: Bench): Promise<Row[]> {
  const tapes = sizes(bench).map((entries) => {
    const path = tapeOf(bench, entries);
    using store = openTapeStore(path, { durability: 'fast' });
    return { entries, path, from: endWithTail(store) };
  });
  const samples = await gather(
    Object.fromEntries(
      tapes.flatMap(({ entries, path, from }) => [
        [`ours ${entries}`, () => numberOf(ourView, path)],
        [`raw ${entries}`, () => numberOf(rawView, path, from)],
      ]),
    ),
    bench.size(15, 1),
  );
  const [shortest = 0, ...longer] = tapes.map(({ entries }) => entries);
  return [
    ...tapes.map(({ entries }) =>
      compared(samples[`ours ${entries}`] ?? [], samples[`raw ${entries}`] ?? [], {
        work: `cold open and last view of ${grouped(entries)} entries (CPU)`,
        against: 'raw open, SELECT of the same rows and JSON.parse',
        unit: 'ms',
        goal: { most: 3 },
      }),
    ),
    ...longer.slice(-1).map((entries) =>
      compared(samples[`ours ${entries}`] ?? [], samples[`ours ${shortest}`] ?? [], {
        work: `cold open and last view of ${grouped(entries)} entries (CPU)`,
        against: `the same of ${grouped(shortest)} entries`,
        unit: 'ms',
        goal: { most: 1.2 },
      }),
    ),
  ];
}
