import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SourceTable } from '@tapedeck/runtime/import';
import { openTapeStore } from '@tapedeck/tape';
import { cpuOf } from './cpu.ts';
import { importFile } from './import-file.ts';
import { gather } from './measure.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** The import of a new transcript into a home of many sessions, with what earlier imports have kept of these and without. */
export async function oneImport(bench: Bench): Promise<Row[]> {
  const count = bench.size(2_000, 20);
  const home = join(bench.dir, 'home-of-many');
  mkdirSync(home, { mode: 0o700 });
  const sources = join(home, 'sources.jsonl');
  const file = join(bench.dir, 'one.jsonl');
  let made = 0;
  /** Imports a number of new transcripts as one process does. */
  const importNew = async (number: number) => {
    using store = openTapeStore(join(home, 'tape.db'));
    const table = SourceTable.open(sources);
    for (let i = 0; i < number; i += 1) {
      made += 1;
      writeFileSync(file, turnOf(made));
      await importFile(store, file, table);
    }
  };
  await importNew(count);
  const samples = await gather(
    {
      kept: () => cpuOf(() => importNew(1)),
      bare: () => {
        rmSync(`${sources}.sessions`);
        return cpuOf(() => importNew(1));
      },
    },
    bench.size(7, 1),
  );
  return [
    compared(samples.kept, samples.bare, {
      work: `import of a new transcript, in a home of ${grouped(count)} sessions (CPU)`,
      against: 'the same, reading all sessions',
      unit: 'ms',
      goal: { most: 0.35 },
    }),
  ];
}

/** The text of a transcript that has nothing in common with another one: a prompt and its answer. */
function turnOf(n: number): string {
  const session = `${n.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
  const [prompt, answer] = [`${session}-prompt`, `${session}-answer`];
  const timestamp = new Date(1_700_000_000_000 + n * 1000).toISOString();
  const records = [
    { type: 'user', uuid: prompt, parentUuid: null, message: { role: 'user', content: `Question ${n}` } },
    {
      ...{ type: 'assistant', uuid: answer, parentUuid: prompt, requestId: `request-${n}` },
      message: {
        id: `message-${n}`,
        role: 'assistant',
        model: 'claude-x',
        content: [{ type: 'text', text: 'Yes.' }],
      },
    },
  ];
  return records.map((one) => `${JSON.stringify({ ...one, sessionId: session, timestamp })}\n`).join('');
}
