import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { inChild } from './child.ts';
import { gather } from './measure.ts';
import { grouped } from './table.ts';
import { type Bench, compared, counted, type Row } from './topic.ts';

/** A deck on a home, or on a store in memory for `:memory:`, and a model that answers with this many tokens, this many a second. */
const opening = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { openDeck } from '@tapedeck/runtime';
  import { openTapeStore } from '@tapedeck/tape';
  const usage = { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 1, text: 1 } };
  const model = (count, perSecond) => ({
    specificationVersion: 'v4', provider: 'bench', modelId: 'bench', supportedUrls: {},
    doGenerate: async () => { throw new Error('it only streams'); },
    doStream: async () => ({ stream: ReadableStream.from((async function* () {
      yield { type: 'stream-start', warnings: [] };
      yield { type: 'text-start', id: 't' };
      const start = performance.now();
      for (let i = 0; i < count; i += 1) {
        const due = start + (i * 1000) / perSecond;
        if (due > performance.now()) await sleep(due - performance.now());
        yield { type: 'text-delta', id: 't', delta: 'token' + i + ' ' };
      }
      yield { type: 'text-end', id: 't' };
      yield { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage };
    })()) }),
  });
  const [home, ...numbers] = process.argv.slice(1);
  const place = home === ':memory:' ? { store: openTapeStore(home) } : { home };
  const deck = await openDeck({ ...place, model: 'script:none.json' });
  let runs = 0;
  const atOnce = async (count, answers) => {
    await Promise.all(Array.from({ length: count }, async () => {
      runs += 1;
      await (await deck.session('s-' + runs)).run('Go', { model: answers });
    }));
  };`;

/** The processor time of each run in microseconds: of many at once, and of few at once, as often. */
const together = `${opening}
  const [few, many, tokens] = numbers.map(Number);
  const answers = model(tokens, 20);
  const each = async (count, times) => {
    const before = process.cpuUsage();
    for (let i = 0; i < times; i += 1) await atOnce(count, answers);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / (count * times);
  };
  await each(few, 1);
  console.log(JSON.stringify({ few: await each(few, 2), many: await each(many, 1) }));
  await deck.close();`;

/** The heap in bytes, without garbage, after some sessions and after many, each of which ran once. */
const used = `${opening}
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const answers = model(1, Infinity);
  const after = async (count) => {
    while (runs < count) await atOnce(Math.min(20, count - runs), answers);
    await deck.idle();
    await sleep(200);
    collect();
    return process.memoryUsage().heapUsed;
  };
  const [few, many] = numbers.map(Number);
  console.log(JSON.stringify({ few: await after(few), many: await after(many) }));
  await deck.close();`;

interface Both {
  readonly few: number;
  readonly many: number;
}

/** A deck that is open for long: what many sessions leave in memory, and what each of many runs at once takes. */
export async function deck(bench: Bench): Promise<Row[]> {
  return [await runsAtOnce(bench), await heapOfMany(bench)];
}

async function runsAtOnce(bench: Bench): Promise<Row> {
  const [few, many, tokens] = bench.size([50, 500, 40], [2, 4, 2]);
  let homes = 0;
  const { both } = await gather(
    {
      both: async () => {
        homes += 1;
        const home = join(bench.dir, `runs-${homes}`);
        mkdirSync(home, { mode: 0o700 });
        return ratio((await inChild(together, home, few, many, tokens)) as Both);
      },
    },
    bench.size(3, 1),
  );
  return compared(
    both,
    both.map(() => 1),
    {
      work: `processor time of each of ${many} runs at once`,
      against: `of each of ${few} at once`,
      unit: 'share',
      goal: { most: 1.2 },
    },
  );
}

function ratio({ few, many }: Both): number {
  return many / few;
}

async function heapOfMany(bench: Bench): Promise<Row> {
  const [few, many] = bench.size([1_000, 20_000], [20, 40]);
  // What a deck keeps in memory does not depend on the disk, which would take most of the time.
  const heap = (await inChild(used, ':memory:', few, many)) as Both;
  return counted(heap.many / 1e6, heap.few / 1e6, {
    work: `heap of a deck after ${grouped(many)} sessions, each run once`,
    against: `after ${grouped(few)}`,
    unit: 'MB',
    goal: { most: 1.05 },
  });
}
