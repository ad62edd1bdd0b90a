import { dirname } from 'node:path';
import { gather } from './measure.ts';
import { processesOf, tape } from './process-time.ts';
import { tapeOf } from './stores.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** The least that a process in Node.js needs to show something of a database. */
const bare = `
  const Database = require('better-sqlite3');
  const db = new Database(process.argv[1], { readonly: true });
  console.log(db.prepare('SELECT name, head_seq FROM tape ORDER BY updated_at DESC LIMIT 20').all());
  db.close();`;

/** The verbs that a person waits for, with the most that they may take. */
const goals = {
  'log main -n 20': 1.4,
  'show main@5': 1.4,
  sessions: 1.4,
  'status main': 1.4,
  'fork main': 1.4,
  'append main': 1.4,
  'view main': 2,
  'verify main': 2,
} as const;

/** The processor time of a process from its start to its end, for the verbs that one waits for. */
export async function cli(bench: Bench): Promise<Row[]> {
  const path = tapeOf(bench, bench.size(200, 100));
  const timed = processesOf(dirname(path));
  const lines = Object.keys(goals) as (keyof typeof goals)[];
  const samples = await gather(
    {
      bare: timed('-e', bare, path),
      ...Object.fromEntries(lines.map((line) => [line, timed(tape, ...line.split(' '))])),
    } as Readonly<Record<'bare' | keyof typeof goals, () => Promise<number>>>,
    bench.size(25, 2),
  );
  return lines.map((line) =>
    compared(samples[line], samples.bare, {
      work: `tape ${line}, a process (CPU)`,
      against: 'a bare process that opens the database and prints',
      unit: 'ms',
      goal: { most: goals[line] },
    }),
  );
}
