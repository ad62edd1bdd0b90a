import { openTapeStore } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';
import { measureBoth } from './measure.ts';
import { rawHandle } from './raw.ts';
import { longSize, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** Verifying a chain, against hashing the same payloads. */
export function verify(bench: Bench): Row[] {
  const entries = longSize(bench);
  const path = tapeOf(bench, entries);
  using stack = new DisposableStack();
  const store = stack.use(openTapeStore(path, { readonly: true }));
  const db = stack.adopt(rawHandle(path, 'NORMAL'), (handle) => handle.close());
  const select = db.prepare<[], string>('SELECT payload FROM entry WHERE tape_id = 1').pluck();
  const payloads = select.all();
  const { cpu: samples } = measureBoth(
    {
      hash: { act: () => payloads.forEach((payload) => void sha256(payload)) },
      read: {
        act: () => {
          for (const payload of select.iterate()) sha256(payload);
        },
      },
      store: {
        act: () => {
          const [problem] = store.verify('main');
          if (problem !== undefined) throw new Error(problem.message);
        },
      },
    },
    { rounds: bench.size(5, 3), times: 1 },
  );
  const work = `verify of ${grouped(entries)} entries (CPU)`;
  return [
    compared(samples.store, samples.hash, {
      work,
      against: 'hashing the same payloads, in memory',
      unit: 'ms',
      goal: { most: 4.5 },
    }),
    compared(samples.store, samples.read, {
      work,
      against: 'raw SELECT of the payloads and hashing',
      unit: 'ms',
    }),
  ];
}
