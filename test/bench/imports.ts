import { appendFileSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  conversationsIn,
  discover,
  importConversation,
  readTranscript,
  SourceTable,
  transcriptTools,
} from '@tapedeck/runtime/import';
import { isUnchanged, openFile, stateOf } from '@tapedeck/runtime/internal';
import { openTapeStore } from '@tapedeck/tape';
import { encodeJson } from '@tapedeck/tape/store';
import { peakMemory } from '../support/peak-memory.ts';
import { cpuOf, type Took, tookBy } from './cpu.ts';
import { importFile } from './import-file.ts';
import { gather } from './measure.ts';
import { oneImport } from './one-import.ts';
import { rawTable } from './raw.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';
import { type Shape, transcriptLines, writeTranscript } from './transcripts.ts';

/** Imports of transcripts of Claude Code against parsing their lines, against `stat`, and the memory that they take. */
export async function imports(bench: Bench): Promise<Row[]> {
  return [
    ...(await first(bench)),
    ...(await grown(bench)),
    ...(await again(bench)),
    ...(await oneImport(bench)),
    ...(await memory(bench)),
  ];
}

async function first(bench: Bench): Promise<Row[]> {
  const bytes = bench.size(20_000_000, 60_000);
  const file = join(bench.dir, 'first.jsonl');
  writeTranscript(file, { bytes });
  const lines = [...transcriptLines({ bytes })];
  const place = { env: {}, home: bench.dir };
  const { files } = await discover({ place, tools: transcriptTools, paths: [file] });
  const payloads = readTranscript(file).conversations.flatMap(({ spine, asides }) =>
    [...spine, ...asides.map(({ draft }) => draft)].map(({ payload }) => encodeJson(payload)),
  );
  const inNewHome = async (act: (path: string) => unknown) => {
    const home = join(bench.dir, 'home-of-imports');
    mkdirSync(home, { mode: 0o700 });
    const took = await tookBy(() => act(join(home, 'tape.db')));
    rmSync(home, { recursive: true });
    return took;
  };
  /** As the verb does it, with `--raw` if nothing is searched for secrets. */
  const importInto = async (path: string, isSearched: boolean) => {
    using store = openTapeStore(path, { durability: 'full', redact: isSearched });
    const how = isSearched ? {} : ({ clean: false } as const);
    for (const conversation of conversationsIn(files)) await importConversation(store, conversation, how);
  };
  const samples = await gather(
    {
      parse: () =>
        tookBy(() => {
          for (const line of lines) JSON.parse(line);
        }),
      insert: () =>
        inNewHome((path) => {
          using table = rawTable(path, 'FULL');
          table.insertAll(payloads);
        }),
      import: () => inNewHome((path) => importInto(path, false)),
      searched: () => inNewHome((path) => importInto(path, true)),
    },
    bench.size(7, 1),
  );
  const of = `of ${megabytes(bytes)} in ${grouped(lines.length)} lines`;
  const clock = (took: readonly Took[]) => took.map((one) => one.clock);
  const cpu = (took: readonly Took[]) => took.map((one) => one.cpu);
  const both = samples.parse.map((parse, i) => parse.cpu + (samples.insert[i]?.cpu ?? Number.NaN));
  const parsing = 'JSON.parse of the same lines';
  return [
    compared(clock(samples.searched), clock(samples.parse), {
      work: `first import ${of}, by the clock`,
      against: parsing,
      unit: 'ms',
      goal: { most: 4 },
    }),
    compared(clock(samples.import), clock(samples.parse), {
      work: `first import --raw ${of}, by the clock`,
      against: parsing,
      unit: 'ms',
    }),
    compared(cpu(samples.import), cpu(samples.parse), {
      work: `first import --raw ${of} (CPU)`,
      against: parsing,
      unit: 'ms',
      goal: { most: 14 },
    }),
    compared(cpu(samples.import), both, {
      work: `first import --raw ${of} (CPU)`,
      against: 'JSON.parse, and raw inserts of the payloads in one transaction, synchronous=FULL',
      unit: 'ms',
      goal: { most: 5.2 },
    }),
    compared(cpu(samples.searched), cpu(samples.import), {
      work: `first import ${of} (CPU)`,
      against: 'the same with --raw, not searched for secrets',
      unit: 'ms',
      goal: { most: 1.35 },
    }),
  ];
}

async function grown(bench: Bench): Promise<Row[]> {
  const bytes = bench.size(20_000_000, 600_000);
  const lines = [...transcriptLines({ bytes })];
  const cut = Math.floor(lines.length * 0.99);
  const samples = await gather(
    {
      both: async () => {
        const home = join(bench.dir, 'home-of-grown');
        mkdirSync(home, { mode: 0o700 });
        const file = join(home, 't.jsonl');
        const act = async () => {
          using store = openTapeStore(join(home, 'tape.db'), { durability: 'full' });
          await importFile(store, file, SourceTable.open(join(home, 'sources.jsonl')));
        };
        writeFileSync(file, `${lines.slice(0, cut).join('\n')}\n`);
        const one = await cpuOf(act);
        appendFileSync(file, `${lines.slice(cut).join('\n')}\n`);
        const two = await cpuOf(act);
        rmSync(home, { recursive: true });
        return { one, two };
      },
    },
    bench.size(7, 1),
  );
  return [
    compared(
      samples.both.map(({ two }) => two),
      samples.both.map(({ one }) => one),
      {
        work: `import of a file of ${megabytes(bytes)} that grew by 1 % (CPU)`,
        against: 'its first import',
        unit: 'ms',
        goal: { most: 0.05 },
      },
    ),
  ];
}

/** What `tape import` may take of a file of any size, in MB. */
const budget = 256;

async function memory(bench: Bench): Promise<Row[]> {
  const peakOf = async (shape: Shape) => {
    const home = join(bench.dir, 'home-of-memory');
    mkdirSync(home, { mode: 0o700 });
    const file = join(home, 't.jsonl');
    const { bytes } = writeTranscript(file, shape);
    const { peak } = await peakMemory(join(home, 'home'), ['import', file, '--yes']);
    rmSync(home, { recursive: true });
    return { peak, bytes };
  };
  const large = await peakOf({ bytes: bench.size(600_000_000, 600_000) });
  const long = await peakOf({
    bytes: bench.size(200_000_000, 600_000),
    output: bench.size(7_900_000, 50_000),
  });
  const row = (peak: number, work: string) =>
    compared([peak], [budget], {
      work: `peak memory: first import of ${work}`,
      against: `a budget of ${budget} MB`,
      unit: 'MB',
      goal: { most: 1 },
    });
  return [
    row(large.peak, `a file of ${megabytes(large.bytes)}`),
    row(long.peak, `a file of ${megabytes(long.bytes)} with lines of ${bench.size('16 MB', '100 KB')}`),
  ];
}

function megabytes(bytes: number): string {
  return `${grouped(Math.round(bytes / 1_000_000))} MB`;
}

async function again(bench: Bench): Promise<Row[]> {
  const count = bench.size(1_000, 20);
  const home = join(bench.dir, 'imported-before');
  const paths = await sourcesIn(home, count);
  const table = join(home, 'sources.jsonl');
  const samples = await gather(
    {
      stat: () =>
        cpuOf(() => {
          for (const path of paths) statSync(path);
        }),
      again: () =>
        cpuOf(async () => {
          const known = SourceTable.open(table);
          const { files } = await discover({
            place: { env: {}, home },
            tools: transcriptTools,
            known: (path) => known.at(path),
          });
          const isRead = files.every(({ path, facts }) => {
            const source = known.at(path);
            return source !== undefined && isUnchanged(source, facts);
          });
          if (!isRead || files.length !== count) throw new Error('there is something new');
        }),
    },
    bench.size(41, 1),
    // Until V8 has compiled what runs for each file: it takes the processor beside the first rounds.
    { warmUp: bench.size(60, 1) },
  );
  return [
    compared(samples.again, samples.stat, {
      work: `importing again, nothing new in ${grouped(count)} files (CPU)`,
      against: 'one stat of each file',
      unit: 'ms',
      goal: { most: 3 },
    }),
  ];
}

/** Makes transcripts in the folders of twenty projects, and says in the table of sources that they were read. */
async function sourcesIn(home: string, count: number): Promise<readonly string[]> {
  const paths: string[] = [];
  mkdirSync(home, { mode: 0o700 });
  const known = SourceTable.open(join(home, 'sources.jsonl'));
  for (let i = 0; i < count; i += 1) {
    const id = `${i.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
    const folder = join(home, '.claude', 'projects', `-home-user-project-${i % 20}`);
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `${id}.jsonl`);
    writeTranscript(path, { bytes: 4_000 }, { id });
    const file = openFile(path);
    const read = await stateOf(file);
    file.close();
    const about = { tool: 'claude-code', session: id, main: id, role: 'main', at: 0 } as const;
    known.put([{ path, ...file.facts, ...about, project: `/home/user/project-${i % 20}`, read }]);
    paths.push(path);
  }
  return paths;
}
