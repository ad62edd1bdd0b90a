import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assistant, type Draft, openTapeStore, toolCall, toolResult } from '@tapedeck/tape';
import { encodeJson, sha256 } from '@tapedeck/tape/store';
import { strippedLayout } from './layout.ts';
import { type Effort, measure, measureBoth, type Sample, type Work } from './measure.ts';
import { bytesOf, payloads, take } from './payload.ts';
import { rawTable, type Synchronous } from './raw.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** Appends against a bare insert of the same bytes: one at a time, without waiting for the disk, and many at once. */
export function append(bench: Bench): Row[] {
  return [
    ...single(bench, 'FULL'),
    ...single(bench, 'NORMAL'),
    ...calls(bench),
    ...redacted(bench),
    ...batches(bench),
  ];
}

const titles = { FULL: 'durable append', NORMAL: "append, durability 'fast'" } as const;
/** By the clock, which a sync rules: see `docs/performance.md`. */
const goals = { FULL: 2, NORMAL: undefined } as const;

function single(bench: Bench, synchronous: Synchronous): Row[] {
  const file = (name: string) => join(bench.dir, `append-${synchronous}-${name}.db`);
  using raw = rawTable(file('raw'), synchronous);
  using bare = strippedLayout(file('bare'), synchronous, { indexes: false, triggers: false, chain: false });
  using indexed = strippedLayout(file('indexed'), synchronous, {
    indexes: true,
    triggers: false,
    chain: false,
  });
  using guarded = strippedLayout(file('guarded'), synchronous, {
    indexes: true,
    triggers: true,
    chain: false,
  });
  using chained = strippedLayout(file('chained'), synchronous, {
    indexes: true,
    triggers: true,
    chain: true,
  });
  using store = openTapeStore(file('tape'), { durability: synchronous === 'FULL' ? 'full' : 'fast' });
  store.sessions.open('main');
  const effort: Effort = { rounds: bench.size(40, 3), times: bench.size(100, 5) };
  const drafts = take(payloads(), effort.times);
  const texts = drafts.map(bytesOf);
  const each = (act: (draft: Draft) => unknown): Work => ({ act: (i) => act(at(drafts, i)) });
  const { wall: samples, cpu } = measureBoth(
    {
      raw: { act: (i) => raw.insert(at(texts, i)) },
      bare: each((draft) => bare.append(draft.payload)),
      indexed: each((draft) => indexed.append(draft.payload)),
      guarded: each((draft) => guarded.append(draft.payload)),
      chained: each((draft) => chained.append(draft.payload)),
      keyed: {
        act: (i) => store.entries.append('main', [at(drafts, i)], { key: `${performance.now()}-${i}` }),
      },
      store: each((draft) => store.entries.append('main', [draft])),
    },
    effort,
  );
  const title = titles[synchronous];
  const row = (ours: Sample, limit: Sample, work: string, against: string, goal?: number) =>
    compared(ours, limit, { work, against, unit: 'µs', ...(goal !== undefined && { goal: { most: goal } }) });
  const limit = `raw insert, synchronous=${synchronous}`;
  // A sync takes most of the time of a durable append, and little of the processor.
  const [parts, by] = synchronous === 'FULL' ? [samples, ''] : [cpu, ' (CPU)'];
  return [
    row(samples.store, samples.raw, title, limit, goals[synchronous]),
    row(cpu.store, cpu.raw, `${title} (CPU)`, limit),
    row(
      cpu.store,
      cpu.chained,
      `${title} (CPU)`,
      'the same statements, hashes and triggers without the store',
      1.4,
    ),
    row(parts.keyed, parts.raw, `${title}, with a key${by}`, limit),
    row(parts.bare, parts.raw, `${title}: entry and head alone${by}`, limit),
    row(parts.indexed, parts.bare, `${title}: with the indexes${by}`, 'without them'),
    row(parts.guarded, parts.indexed, `${title}: with the triggers${by}`, 'without them'),
    row(parts.chained, parts.guarded, `${title}: with the hash chain${by}`, 'without it'),
    row(parts.store, parts.chained, `${title}: with all else that the store does${by}`, 'without it'),
  ];
}

/** A call and its result are two appends, and what is open is noted beside them. */
function calls(bench: Bench): Row[] {
  using raw = rawTable(join(bench.dir, 'calls-raw.db'), 'FULL');
  using store = openTapeStore(join(bench.dir, 'calls.db'));
  store.sessions.open('main');
  const [text] = take(payloads(), 1).map(bytesOf);
  const asked = (id: string): Draft => ({
    kind: 'message',
    payload: {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: id, toolName: 'read', input: { path: 'README.md' } }],
    },
  });
  const answered = (id: string): Draft => ({
    kind: 'tool-result',
    payload: { type: 'tool-result', toolCallId: id, toolName: 'read', output: { type: 'text', value: text } },
  });
  const texts = [asked('c'), answered('c')].map(bytesOf);
  const samples = measure(
    {
      raw: { act: () => texts.forEach((each) => void raw.insert(each)) },
      store: {
        act: (i) => {
          store.entries.append('main', [asked(`c${i}`)]);
          store.entries.append('main', [answered(`c${i}`)]);
        },
      },
    },
    { rounds: bench.size(40, 3), times: bench.size(10, 2) },
  );
  return [
    compared(samples.store, samples.raw, {
      work: 'durable appends of a tool call and its result',
      against: 'two raw inserts, synchronous=FULL',
      unit: 'µs',
    }),
  ];
}

/** Outputs of tools that read files: pages, sources and a list of hashes, 1.3 KB each. */
function outputs(): readonly string[] {
  const chars = 1300;
  return ['ARCHITECTURE.md', 'packages/tape/src/store/store.ts', 'pnpm-lock.yaml', 'docs/cli.md'].flatMap(
    (file) => {
      const text = readFileSync(join(import.meta.dirname, '../..', file), 'utf8');
      return Array.from({ length: 10 }, (_, i) => text.slice(i * chars, (i + 1) * chars));
    },
  );
}

/** What it costs to look for secrets in the outputs of tools, which have none. */
function redacted(bench: Bench): Row[] {
  const texts = outputs();
  let calls = 0;
  const work = (redact: boolean) => {
    const store = openTapeStore(join(bench.dir, `redact-${redact}.db`), { secrets: [], redact });
    store.sessions.open('main');
    const open: string[] = [];
    let next = 0;
    return {
      [Symbol.dispose]: () => store.close(),
      prepare: (times: number) => {
        open.length = 0;
        for (let i = 0; i < times; i += 1) open.push(`call-${calls++}`);
        const content = open.map((id) => toolCall(id, 'read', { path: 'README.md' }));
        store.entries.append('main', [assistant(content)]);
      },
      act: (i: number) => {
        const call = { toolCallId: open[i] ?? '', toolName: 'read' };
        store.entries.append('main', [toolResult(call, at(texts, next++ % texts.length))]);
      },
    };
  };
  using plain = work(false);
  using searched = work(true);
  const taken = measureBoth({ plain, searched }, { rounds: bench.size(250, 3), times: bench.size(10, 5) });
  return (['wall', 'cpu'] as const).map((of) =>
    compared(taken[of].searched, taken[of].plain, {
      work: `durable append of a tool's output, searched for secrets${of === 'cpu' ? ' (CPU)' : ''}`,
      against: 'the same without the search',
      unit: 'µs',
      goal: { most: 1.15 },
    }),
  );
}

function batches(bench: Bench): Row[] {
  using raw = rawTable(join(bench.dir, 'batch-raw.db'), 'FULL');
  using store = openTapeStore(join(bench.dir, 'batch.db'));
  store.sessions.open('main');
  const count = bench.size(1000, 50);
  const drafts = take(payloads(), count);
  const texts = drafts.map(bytesOf);
  const perEntry = (sample: Sample) => sample.map((each) => each / count);
  const { wall: samples, cpu } = measureBoth(
    {
      raw: { act: () => raw.insertAll(texts) },
      hash: { act: () => texts.forEach((text) => void sha256(text)) },
      encode: { act: () => drafts.forEach((draft) => void encodeJson(draft.payload)) },
      store: { act: () => store.entries.append('main', drafts) },
    },
    { rounds: bench.size(20, 3), times: 1 },
  );
  const work = `append in batches of ${grouped(count)}, an entry`;
  const row = (limit: Sample, against: string, goal?: number) =>
    compared(perEntry(samples.store), perEntry(limit), {
      work,
      against,
      unit: 'µs',
      ...(goal !== undefined && { goal: { most: goal } }),
    });
  return [
    row(samples.raw, 'raw inserts in one transaction'),
    compared(perEntry(cpu.store), perEntry(cpu.raw), {
      work: `${work} (CPU)`,
      against: 'raw inserts in one transaction',
      unit: 'µs',
      goal: { most: 6 },
    }),
    row(samples.hash, 'hashing the bytes of its payload'),
    row(samples.encode, 'encoding and checking the JSON alone'),
  ];
}

function at<T>(items: readonly T[], i: number): T {
  const item = items[i];
  if (item === undefined) throw new RangeError(`there is no item ${i}`);
  return item;
}
