import { createHash } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openTapeStore } from '@tapedeck/tape';
import { numberOf } from './child.ts';
import { gather } from './measure.ts';
import { sayPeak } from './memory.ts';
import { rawHandle, rawTable } from './raw.ts';
import { longSize, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** Bundles against parsing and hashing the same lines, and the memory that a long lineage takes. */
export async function bundle(bench: Bench): Promise<Row[]> {
  return [...(await times(bench)), ...(await memory(bench))];
}

async function times(bench: Bench): Promise<Row[]> {
  const entries = longSize(bench);
  const from = tapeOf(bench, entries);
  const [file, copy] = [join(bench.dir, 'main.tape'), join(bench.dir, 'again.tape')];
  using here = openTapeStore(from);
  await here.bundles.save('main', file, { secrets: [], raw: true });
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  using stack = new DisposableStack();
  const db = stack.adopt(rawHandle(from, 'NORMAL'), (handle) => handle.close());
  const rows = db.prepare('SELECT * FROM entry WHERE tape_id = 1 ORDER BY seq');
  const payloads = db.prepare<[], string>('SELECT payload FROM entry WHERE tape_id = 1').pluck().all();
  /** Microseconds of the processor for each line. */
  const perLine = async (act: () => unknown) => {
    const before = process.cpuUsage();
    await act();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / lines.length;
  };
  const write = async (o: { readonly raw?: boolean }) => {
    await here.bundles.save('main', copy, { secrets: [], ...o });
    rmSync(copy);
  };
  const inNewHome = async (act: (path: string) => unknown) => {
    const home = join(bench.dir, 'home-into');
    await act(join(home, 'tape.db'));
    rmSync(home, { recursive: true });
  };
  const samples = await gather(
    {
      parse: async () =>
        await perLine(() => {
          const sum = createHash('sha256');
          for (const line of lines) {
            JSON.parse(line);
            sum.update(line);
          }
          sum.digest();
        }),
      select: async () =>
        await perLine(() => {
          for (const row of rows.iterate()) void row;
        }),
      insert: async () =>
        await perLine(async () => {
          await inNewHome((path) => {
            openTapeStore(path).close();
            using table = rawTable(`${path}.raw`, 'FULL');
            table.insertAll(payloads);
          });
        }),
      out: async () => await perLine(async () => await write({ raw: true })),
      searched: async () => await perLine(async () => await write({})),
      into: async () =>
        await perLine(async () => {
          await inNewHome(async (path) => {
            using store = openTapeStore(path, { durability: 'full' });
            await store.bundles.adopt(file);
          });
        }),
    },
    bench.size(5, 1),
  );
  const { parse, select, insert, out, searched, into } = samples;
  const row = (sample: readonly number[], limit: readonly number[], [work, against, most]: Compared) =>
    compared(sample, limit, {
      work: `${work} of ${grouped(entries)} entries, a line (CPU)`,
      against,
      unit: 'µs',
      ...(most !== undefined && { goal: { most } }),
    });
  const parsing = 'JSON.parse and hashing of the same lines';
  return [
    row(out, parse, ['export --raw', parsing, 2.8]),
    row(out, select, ['export --raw', 'raw SELECT of the same rows']),
    row(searched, out, ['export, searched for secrets,', 'export --raw']),
    row(into, parse, ['import, durability full,', parsing]),
    row(into, insert, ['import, durability full,', 'raw inserts of the payloads in one transaction', 6]),
  ];
}

type Compared = readonly [work: string, against: string, most?: number];

/** What a bundle of any size may take, in MB. */
const budget = 256;

const script = (act: string) => `
  import { openTapeStore } from '@tapedeck/tape';
  const [db, file] = process.argv.slice(1);
  const store = openTapeStore(db);
  await ${act};
  store.close();
  ${sayPeak}`;

async function memory(bench: Bench): Promise<Row[]> {
  const entries = bench.size(1_000_000, 400);
  const from = tapeOf(bench, entries);
  {
    using store = openTapeStore(from);
    store.lineage.fork('main', { name: 'end-of-main' });
  }
  const file = join(bench.dir, 'lineage.tape');
  const into = join(bench.dir, 'home-of-lineage', 'tape.db');
  const save = `store.bundles.save('end-of-main', file, { scope: 'lineage' })`;
  const out = await numberOf(script(save), from, file);
  const read = await numberOf(script('store.bundles.adopt(file)'), into, file);
  const row = (peak: number, work: string) =>
    compared([peak], [budget], {
      work: `peak memory: ${work} of a lineage of ${grouped(entries)} entries`,
      against: `a budget of ${budget} MB`,
      unit: 'MB',
      goal: { most: 1 },
    });
  return [row(out, 'export'), row(read, 'import')];
}
