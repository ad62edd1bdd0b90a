import { join } from 'node:path';
import { openTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { inChild } from './child.ts';
import { median } from './measure.ts';
import { type Bench, counted, type Row } from './topic.ts';

/** Appends one entry after another from a given moment on, for a given time, and says what came of it. */
const writer = `
  import { openTapeStore, user } from '@tapedeck/tape';
  const [path, session, start, ms] = process.argv.slice(1);
  const store = openTapeStore(path);
  const draft = [user('x'.repeat(1200))];
  while (Date.now() < Number(start));
  const end = performance.now() + Number(ms);
  let [count, worst] = [0, 0];
  for (let before = performance.now(); before < end; ) {
    store.entries.append(session, draft);
    const now = performance.now();
    worst = Math.max(worst, now - before);
    before = now;
    count += 1;
  }
  store.close();
  console.log(JSON.stringify({ count, worst }));`;

interface Race {
  /** Appends a second, of all together. */
  readonly total: number;
  /** The slowest writer's part of a fair share. */
  readonly slowest: number;
  /** Milliseconds. */
  readonly worst: number;
  readonly acknowledged: number;
  readonly found: number;
}

interface Field {
  readonly name: string;
  readonly writers: number;
  /** Whether all write one session. */
  readonly shared: boolean;
}

const alone: Field = { name: '1', writers: 1, shared: false };
const fields: readonly Field[] = [
  { name: '2 writers, each its own session', writers: 2, shared: false },
  { name: '4 writers, each its own session', writers: 4, shared: false },
  { name: '2 writers of one session', writers: 2, shared: true },
  { name: '4 writers of one session', writers: 4, shared: true },
];

/** Durable appends by several processes to one database. */
export async function processes(bench: Bench): Promise<Row[]> {
  const rounds = bench.size(3, 1);
  const path = join(bench.dir, 'processes.db');
  const races = new Map<Field, Race[]>([alone, ...fields].map((field) => [field, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const [field, done] of races) done.push(await race(path, field, bench.size(1500, 200)));
  const one = middle(races.get(alone), 'total');
  return fields.flatMap((field) => {
    const done = races.get(field);
    const all = (of: keyof Race) => (done ?? []).map((each) => each[of]).reduce((a, b) => a + b, 0);
    return [
      counted(middle(done, 'total'), one, {
        work: `durable appends by ${field.name}`,
        against: 'one writer',
        unit: '/s',
        goal: { least: 0.9 },
      }),
      counted(middle(done, 'slowest'), 1, {
        work: `share of the slowest of ${field.name}`,
        against: 'a fair share',
        unit: 'share',
        goal: { least: 0.5 },
      }),
      counted(Math.max(...(done ?? []).map(({ worst }) => worst)), 1000, {
        work: `worst wait of ${field.name}`,
        against: 'a second',
        unit: 'ms',
        goal: { most: 1 },
      }),
      counted(all('found'), all('acknowledged'), {
        work: `entries kept of ${field.name}`,
        against: 'those acknowledged',
        unit: 'entries',
        goal: { least: 1 },
      }),
    ];
  });
}

function middle(races: readonly Race[] | undefined, of: keyof Race): number {
  return median((races ?? []).map((each) => each[of]));
}

async function race(path: string, { writers, shared }: Field, ms: number): Promise<Race> {
  const sessions = Array.from({ length: writers }, (_, i) => (shared ? 'shared' : `own-${i}`));
  const heads = () => {
    using store = openTapeStore(path);
    return [...new Set(sessions)].reduce((sum, name) => sum + store.sessions.open(name).head, 0);
  };
  const before = heads();
  // Every process has begun and opened the store by then.
  const start = Date.now() + 500;
  const results = await Promise.all(
    sessions.map(async (session) => readResult(await inChild(writer, path, session, start, ms))),
  );
  const acknowledged = results.reduce((sum, { count }) => sum + count, 0);
  return {
    total: (acknowledged * 1000) / ms,
    slowest: (Math.min(...results.map(({ count }) => count)) * writers) / acknowledged,
    worst: Math.max(...results.map(({ worst }) => worst)),
    acknowledged,
    found: heads() - before,
  };
}

function readResult(said: unknown): { count: number; worst: number } {
  if (!isObject(said) || typeof said.count !== 'number' || typeof said.worst !== 'number')
    throw new Error(`a writer said something else: ${JSON.stringify(said)}`);
  return { count: said.count, worst: said.worst };
}
