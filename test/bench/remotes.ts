import { join } from 'node:path';
import { openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { openRemote, pull, push, type Remote } from '@tapedeck/tape/remotes';
import { grouped } from './table.ts';
import { type Bench, counted, type Row } from './topic.ts';

/** What a push and a pull take that have next to nothing to do, from a directory. */
export async function remotes(bench: Bench): Promise<Row[]> {
  const sessions = bench.size([1_000, 10_000], [20, 50]);
  const rows: Row[] = [];
  for (const n of sessions) rows.push(...(await between(bench, n)));
  return rows;
}

/** A home with many sessions, of which one has a thousand children, and another home that has pulled them. */
async function between(bench: Bench, sessions: number): Promise<readonly Row[]> {
  bench.say(`two homes with ${grouped(sessions)} sessions each`);
  const dir = join(bench.dir, `remotes-${sessions}`);
  const children = Math.min(bench.size(1_000, 10), sessions - 1);
  const [from, into] = [join(dir, 'from'), join(dir, 'into')];
  using here = openTapeStore(join(from, 'tape.db'), { durability: 'fast' });
  using there = openTapeStore(join(into, 'tape.db'), { durability: 'fast' });
  fill(here, sessions - children - 1, children);
  const packs = await openRemote(join(dir, 'packs'), { state: from });
  await push(here, packs, { state: join(from, 'remote') });
  await pull(there, packs, { state: join(into, 'remote') });
  const idle = await best(bench, async () => {
    await push(here, packs, { state: join(from, 'remote') });
    await pull(there, packs, { state: join(into, 'remote') });
  });
  here.entries.append(
    'main',
    Array.from({ length: 10 }, (_, n) => user(`Message ${n}: what does the plan say of the release?`)),
  );
  const { entries, bytes } = await moved(here, packs, { from, there, into });
  if (entries !== 10) throw new Error(`the pull brought ${entries} entries, and not 10`);
  const of = `of ${grouped(sessions)} sessions`;
  return [
    counted(idle, 1_000, {
      ...{ work: `push and pull ${of} with nothing new`, against: 'a second', unit: 'ms' },
      // Ten times as many may take longer.
      ...(sessions <= 1_000 && { goal: { most: 1 } }),
    }),
    counted(bytes, 20_000, {
      ...{ work: `pull of 10 new entries on a parent of ${grouped(children)}, ${of}`, unit: 'bytes' },
      ...{ against: '20 KB', goal: { most: 1 } },
    }),
  ];
}

async function moved(
  here: SqliteTapeStore,
  packs: Remote,
  { from, there, into }: { readonly from: string; readonly there: SqliteTapeStore; readonly into: string },
): Promise<{ readonly entries: number; readonly bytes: number }> {
  await push(here, packs, { state: join(from, 'remote') });
  return await pull(there, packs, { state: join(into, 'remote') });
}

/** The least milliseconds of some rounds: what the act itself takes. */
async function best(bench: Bench, act: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < bench.size(5, 1); n += 1) {
    const begin = performance.now();
    await act();
    least = Math.min(least, performance.now() - begin);
  }
  return least;
}

function fill(store: SqliteTapeStore, roots: number, children: number): void {
  store.sessions.open('main');
  store.entries.append('main', [user('Plan the release.')]);
  for (let n = 0; n < children; n += 1) store.lineage.fork('main', { name: `child-${n}` });
  for (let n = 0; n < roots; n += 1) {
    store.sessions.open(`session-${n}`);
    store.entries.append(`session-${n}`, [user(`Task ${n}.`)]);
  }
}
