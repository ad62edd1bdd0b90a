import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gather } from './measure.ts';
import { tapeOf } from './stores.ts';
import { type Bench, compared, type Row } from './topic.ts';

const tape = fileURLToPath(new URL('../../packages/cli/bin/tape.js', import.meta.url));

/** The least that a process in Node.js needs to show something of a database. */
const bare = `
  const Database = require('better-sqlite3');
  const db = new Database(process.argv[1], { readonly: true });
  console.log(db.prepare('SELECT name, head_seq FROM tape ORDER BY updated_at DESC LIMIT 20').all());
  db.close();`;

/** The time from start to end of a process, for the verbs that one waits for. */
export async function cli(bench: Bench): Promise<Row[]> {
  const path = tapeOf(bench, bench.size(1000, 100));
  const env = { PATH: process.env.PATH, HOME: dirname(path), TAPE_HOME: dirname(path) };
  const timed =
    (...args: readonly string[]) =>
    async () => {
      const start = performance.now();
      const child = spawn(process.execPath, args, {
        env,
        cwd: import.meta.dirname,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      const [code] = (await once(child, 'close')) as [number | null];
      if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
      return (performance.now() - start) * 1000;
    };
  const samples = await gather(
    {
      node: timed('-e', '0'),
      bare: timed('-e', bare, path),
      log: timed(tape, 'log', 'main', '-n', '20'),
      show: timed(tape, 'show', 'main@5'),
      sessions: timed(tape, 'sessions'),
      fork: timed(tape, 'fork', 'main'),
    },
    bench.size(15, 2),
  );
  const verbs = ['log', 'show', 'sessions', 'fork'] as const;
  const against = 'a bare process that opens the database and prints';
  return [
    ...verbs.map((verb) =>
      compared(samples[verb], samples.bare, {
        work: `tape ${verb}, a process`,
        against,
        unit: 'ms',
        goal: { most: 1.6 },
      }),
    ),
    ...verbs.map((verb) =>
      compared(samples[verb], samples.node, {
        work: `tape ${verb}, a process`,
        against: 'node -e 0',
        unit: 'ms',
      }),
    ),
  ];
}
