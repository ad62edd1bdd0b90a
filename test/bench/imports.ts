import { mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  conversationsIn,
  discover,
  importConversation,
  parseJsonLines,
  readTranscript,
  transcriptTools,
} from '@tapedeck/runtime/import';
import { isUnchanged, openFile, SourceTable, stateOf } from '@tapedeck/runtime/internal';
import { openTapeStore } from '@tapedeck/tape';
import { encodeJson } from '@tapedeck/tape/store';
import { gather } from './measure.ts';
import { rawTable } from './raw.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';
import { transcriptLines, writeTranscript } from './transcripts.ts';

/** Imports of transcripts of Claude Code against parsing their lines, against `stat`, and the memory that they take. */
export async function imports(bench: Bench): Promise<Row[]> {
  return [...(await first(bench)), ...(await again(bench))];
}

/** Microseconds of the processor. */
async function cpuOf(act: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  return user + system;
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
    const spent = await cpuOf(() => act(join(home, 'tape.db')));
    rmSync(home, { recursive: true });
    return spent;
  };
  const importInto = async (path: string, redact: boolean) => {
    using store = openTapeStore(path, { durability: 'full', redact });
    for (const conversation of conversationsIn(files))
      await importConversation(store, conversation, { clean: false });
  };
  const samples = await gather(
    {
      parse: () =>
        cpuOf(() => {
          for (const line of lines) JSON.parse(line);
        }),
      lines: () => cpuOf(() => parseJsonLines([Buffer.from(lines.join('\n'))])),
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
  const of = `of ${grouped(Math.round(bytes / 1_000_000))} MB in ${grouped(lines.length)} lines (CPU)`;
  const both = samples.parse.map((parse, i) => parse + (samples.insert[i] ?? Number.NaN));
  const parsing = 'JSON.parse of the same lines';
  return [
    compared(samples.import, samples.parse, {
      work: `first import ${of}`,
      against: parsing,
      unit: 'ms',
      goal: { most: 4 },
    }),
    compared(samples.import, both, {
      work: `first import ${of}`,
      against: 'JSON.parse, and raw inserts of the payloads in one transaction, synchronous=FULL',
      unit: 'ms',
    }),
    compared(samples.searched, samples.import, {
      work: `first import, outputs searched for secrets, ${of}`,
      against: 'the same without the search',
      unit: 'ms',
    }),
  ];
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
    bench.size(21, 1),
    { warmUp: bench.size(5, 1) },
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
