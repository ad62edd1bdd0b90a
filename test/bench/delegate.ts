import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Deck, openDeck } from '@tapedeck/runtime';
import { openTapeStore, result, type SqliteTapeStore } from '@tapedeck/tape';
import { countingStore } from '../support/counting-store.ts';
import { gather } from './measure.ts';
import { longSize, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, counted, type Row } from './topic.ts';

/**
 * Delegations with scripted models: what each child costs must not depend on how many there are, nor on what came
 * before.
 */
export async function delegate(bench: Bench): Promise<Row[]> {
  return [
    ...(await many(bench)),
    ...(await longParent(bench)),
    ...(await together(bench)),
    ...(await calls(bench)),
    ...chain(bench),
  ];
}

/** The calls that a delegated child with one model call makes to the store. */
async function calls(bench: Bench): Promise<Row[]> {
  await using own = openTapeStore(join(bench.dir, 'delegate-calls.db'), { durability: 'fast' });
  const { store, calls: made } = countingStore(own);
  await using deck = await openDeck({ store, model: scriptIn(bench) });
  const parent = await deck.session('main');
  made.length = 0;
  await parent.delegate({ task: 'Task' });
  await deck.idle();
  return [
    counted(made.length, 22, {
      work: 'store calls of a delegated child with one model call',
      against: 'a budget of 22 calls',
      unit: 'calls',
      goal: { most: 1 },
    }),
  ];
}

function scriptIn(bench: Bench): string {
  const file = join(bench.dir, 'delegate.json');
  writeFileSync(file, JSON.stringify([{ text: 'Done.' }]));
  return `script:${file}`;
}

/** Delegates this many tasks to children that inherit nothing; the time of each in microseconds. */
async function perChild(deck: Deck, name: string, children: number, parallel: number): Promise<number> {
  const parent = await deck.session(name);
  const start = performance.now();
  const outcomes = await parent.delegate(
    Array.from({ length: children }, (_, i) => ({ task: `Task ${i}` })),
    { concurrency: parallel, inherit: 'nothing' },
  );
  if (outcomes.some(({ merged }) => merged === undefined)) throw new Error('a child was not merged');
  return ((performance.now() - start) * 1000) / children;
}

/** A thousand children of one parent, two hundred of them at once. */
async function many(bench: Bench): Promise<Row[]> {
  const [few, all, parallel] = [bench.size(100, 4), bench.size(1_000, 8), bench.size(200, 4)];
  await using store = openTapeStore(join(bench.dir, 'delegate-many.db'), { durability: 'fast' });
  const limits = { maxChildren: all, maxTree: all, concurrentChildren: parallel };
  await using deck = await openDeck({ store, model: scriptIn(bench), limits });
  let parents = 0;
  const child = (count: number) => async () => {
    parents += 1;
    return await perChild(deck, `parent-${parents}`, count, parallel);
  };
  const samples = await gather({ few: child(few), all: child(all) }, bench.size(3, 1));
  return [
    compared(samples.all, samples.few, {
      work: `each of ${grouped(all)} children of one parent, ${parallel} at once: forked, run, merged`,
      against: `each of ${grouped(few)}`,
      unit: 'ms',
      goal: { most: 1.5 },
    }),
  ];
}

/** One child at a time of a parent with a long history, which it does not inherit. */
async function longParent(bench: Bench): Promise<Row[]> {
  const path = tapeOf(bench, longSize(bench));
  await using store = openTapeStore(path, { durability: 'fast' });
  await using deck = await openDeck({ store, model: scriptIn(bench) });
  const rounds = bench.size(15, 2);
  const samples = await gather(
    {
      long: async () => await perChild(deck, 'main', 4, 4),
      short: async () => await perChild(deck, 'short', 4, 4),
    },
    rounds,
  );
  return [
    compared(samples.long, samples.short, {
      work: `each child of a parent with ${grouped(longSize(bench))} entries`,
      against: 'each child of a parent with few',
      unit: 'ms',
      goal: { most: 1.3 },
    }),
    counted(walOfMerge(store, path), 80 * 1024, {
      work: `write-ahead log of a merge at ${grouped(longSize(bench))} entries`,
      against: 'a budget of 80 KB',
      unit: 'bytes',
      goal: { most: 1 },
    }),
  ];
}

function walOfMerge(store: SqliteTapeStore, path: string): number {
  const times = 8;
  const children = Array.from({ length: times + 1 }, () => {
    const { session } = store.lineage.fork('main', { inherit: 'nothing' });
    store.entries.append(session, [result('Done.')]);
    return session;
  });
  store.checkpoint();
  store.lineage.merge(children[0] ?? '');
  const before = statSync(`${path}-wal`).size;
  for (const child of children.slice(1)) store.lineage.merge(child);
  return (statSync(`${path}-wal`).size - before) / times;
}

/** Many children in one act. */
async function together(bench: Bench): Promise<Row[]> {
  const [few, all] = [bench.size(50, 4), bench.size(200, 8)];
  using store = openTapeStore(join(bench.dir, 'delegate-together.db'), { durability: 'fast' });
  store.sessions.open('main');
  const each = (count: number) => async () => {
    const drafts = Array.from({ length: count }, (_, i) => {
      const { session } = store.lineage.fork('main', { inherit: 'nothing' });
      store.entries.append(session, [result(`Result ${i}`)]);
      return { child: session };
    });
    const start = performance.now();
    store.lineage.merge(drafts);
    return ((performance.now() - start) * 1000) / count;
  };
  const samples = await gather({ few: each(few), all: each(all) }, bench.size(9, 2));
  return [
    compared(samples.all, samples.few, {
      work: `each of ${all} children merged in one act`,
      against: `each of ${few}`,
      unit: 'ms',
      goal: { most: 1.3 },
    }),
  ];
}

/** Forks of forks of forks. */
function chain(bench: Bench): Row[] {
  const depth = bench.size(100, 5);
  using store = openTapeStore(join(bench.dir, 'delegate-chain.db'), { durability: 'fast' });
  store.sessions.open('main');
  const took: number[] = [];
  let at = 'main';
  for (let n = 0; n < depth; n += 1) {
    const start = performance.now();
    at = store.lineage.fork(at).session;
    took.push((performance.now() - start) * 1000);
    store.entries.append(at, [result('Done.')]);
  }
  const part = Math.max(1, Math.floor(depth / 5));
  return [
    compared(took.slice(-part), took.slice(0, part), {
      work: `a fork ${depth} forks deep`,
      against: 'a fork of a root',
      unit: 'ms',
      goal: { most: 2 },
    }),
  ];
}
