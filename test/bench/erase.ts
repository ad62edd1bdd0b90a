import { join } from 'node:path';
import { openTapeStore, user } from '@tapedeck/tape';
import { cpuOf } from './cpu.ts';
import { gather } from './measure.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** Redactions of many entries at once, each of which must cost the same however many there are. */
export async function erase(bench: Bench): Promise<Row[]> {
  const [few, many] = [bench.size(2_000, 200), bench.size(20_000, 400)];
  let stores = 0;
  const each = async (count: number) => {
    stores += 1;
    using store = openTapeStore(join(bench.dir, `erase-${stores}.db`), { durability: 'fast' });
    store.sessions.open('main');
    const entries = Array.from({ length: count }, (_, i) =>
      user(`Message ${i} ${'of some words '.repeat(8)}`),
    );
    const { from } = store.entries.append('main', entries);
    const seqs = entries.map((_, i) => from + i);
    return (await cpuOf(() => store.entries.redact('main', seqs, 'a key', { wipe: false }))) / count;
  };
  const samples = await gather({ many: () => each(many), few: () => each(few) }, bench.size(5, 1));
  return [
    compared(samples.many, samples.few, {
      work: `redaction of ${grouped(many)} entries of a session, each (CPU)`,
      against: `of ${grouped(few)}, each`,
      unit: 'µs',
      goal: { most: 1.5 },
    }),
  ];
}
